"""Item importers: a module for each group of benchmarks, and for each tool."""
