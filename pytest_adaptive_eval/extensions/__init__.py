"""Parts that register themselves: each folder offers kinds under the names that the registry looks for.

The core never imports this package. Without it, the core runs, and a command that needs an extension names it.
"""
