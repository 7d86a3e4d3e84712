"""AutoBench's peer assessment: models set tasks, answer them, and judge each other's answers."""
