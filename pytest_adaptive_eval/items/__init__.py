"""Items, their graders, banks of items, and responses to them."""
