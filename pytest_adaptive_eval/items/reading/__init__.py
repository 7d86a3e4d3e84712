"""What a text of a model says is its answer: one reader for graders and task families."""
