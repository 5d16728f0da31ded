"""Data sets, one file each, and each file one subclass of :class:`vflens.plugins.dataset.Dataset`.

By default all follow the recipe *clean* (the others: :mod:`vflens.tables.recipes`). It fits no value on
labels or on prediction rows. A categorical column becomes the ordinal code of its category's name in sorted
order; a missing category ("?", "unknown") is a category. Columns of at most 101 possible values have them as
their alphabet.
"""
