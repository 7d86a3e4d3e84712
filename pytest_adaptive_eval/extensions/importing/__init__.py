"""Import of foreign questions: a mapping reads them, and is proposed where nobody wrote one.

`sources` opens files, `names` and `proposal` make a mapping from the names of fields, and `reading` applies it to each
record, with values and choices as `values` reads them.  `keys` finds how answers name choices, `grading` the grader of
each other answer, `items` makes items of both, and `check` grades their keys.  `importer` leads through all of these.
`item_importers` has presets and tools, and `verbs` the command.
"""
