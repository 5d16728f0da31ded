"""Where tables come from: the base of all data sets."""

from abc import ABC, abstractmethod
from typing import ClassVar, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from vflens.errors import DataError
from vflens.tables.recipes import scaled_on_all_rows
from vflens.tables.table import Table

Recipe: TypeAlias = Literal["clean", "paper", "authors"]


class Dataset(BaseModel, ABC):
    """One data set: its options as fields, its table from :meth:`load`, prepared by :meth:`prepared`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: What sets the data apart from those that its name promises; shown wherever results of them are.
    caveat: ClassVar[str] = ""

    recipe: Recipe = Field(
        "clean", description="clean, paper, or authors (bank, robot, satellite and synthetic only)"
    )

    def prepared(self) -> Table:
        """The table as ``recipe`` says (``docs/datasets.md``); under "paper" and "authors" it is in [0, 1].

        Raises:
            DataError: as :meth:`load`, or the data set has no recipe "authors".
        """
        if self.recipe == "authors":
            return self.as_coded()
        return self.load() if self.recipe == "clean" else scaled_on_all_rows(self.load())

    def as_coded(self) -> Table:
        """The table as the scripts of Rassouli et al. make it.

        Raises:
            DataError: their scripts do not treat this data set, or the table cannot be used.
        """
        raise DataError("their scripts do not treat this data set: choose the recipe clean or paper")

    @classmethod
    def has_scripts(cls) -> bool:
        """Whether their scripts treat it: it then overrides :meth:`as_coded`."""
        return cls.as_coded is not Dataset.as_coded

    @abstractmethod
    def load(self) -> Table:
        """The whole table, checked for shape, classes and checksum.

        Raises:
            DataError: the file is absent (says where it was looked for) or not what it should be.
        """
