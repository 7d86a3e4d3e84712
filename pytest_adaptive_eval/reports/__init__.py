"""From a `RunRecord` to what people and machines read."""
