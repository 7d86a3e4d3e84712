"""Find the answer that a model's text states: one reader for graders and task families."""
