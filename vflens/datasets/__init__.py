"""Data sets, one file each, and each file one subclass of :class:`vflens.plugins.dataset.Dataset`.

By default all follow the recipe *clean* (the others: :mod:`vflens.tables.recipes`): nothing is fitted on
labels or on prediction rows; a categorical column becomes the ordinal code of its category's name in sorted
order; a missing category ("?", "unknown") is a category of its own. Columns of at most 101 possible values
carry them as their alphabet.
"""
