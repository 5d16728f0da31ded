"""FedAdOb's tables and figures, in three sizes.

``quick`` is minutes on a small data set; the default has fewer rows and epochs than the paper, which its page
states; ``full`` has the paper's. What cannot be run is printed as "paper only".
"""

from functools import partial

from vflens.experiments.figures import Page, Size
from vflens.experiments.figures.fedadob.ablations import table5, table6
from vflens.experiments.figures.fedadob.forms import accuracy
from vflens.experiments.figures.fedadob.horizontal import figure3, table3
from vflens.experiments.figures.fedadob.images import figure5
from vflens.experiments.figures.fedadob.scoring import figure6
from vflens.experiments.figures.fedadob.times import table7, table8
from vflens.experiments.figures.fedadob.trade_offs import figure4, table4

_SIZES: tuple[Size, ...] = ("quick", "default", "full")
_SEVERAL = partial(Page, sizes=_SIZES, several=True)
_ONE_SEED = partial(Page, sizes=_SIZES)
_MODELS = partial(_SEVERAL, models=True, epochs=True)
_SHARED = "fao-vertical"  # Table IV and Fig. 4 are two views of the same federations
PAGES = (
    _SEVERAL("fao-accuracy", "Accuracy of both forms of the layer (FedAdOb, section 6.2)", accuracy),
    _SEVERAL("fao-table3", "Black-box inversion by a server (FedAdOb, Table III)", table3),
    _SEVERAL("fao-fig3", "Error against accuracy, horizontal (FedAdOb, Fig. 3)", figure3),
    _MODELS("fao-table4", "CAP of each defence, vertical (FedAdOb, Table IV)", table4, _SHARED),
    _MODELS("fao-table5", "Passports: the range of the means (FedAdOb, Table V)", table5),
    _MODELS("fao-table6", "Passports: the variance of the keys (FedAdOb, Table VI)", table6),
    _ONE_SEED(
        "fao-table7", "Processor seconds of vertical training (FedAdOb, Table VII)", table7, models=True
    ),
    _ONE_SEED("fao-table8", "Processor seconds of horizontal training (FedAdOb, Table VIII)", table8),
    _MODELS("fao-fig4", "Error against accuracy, vertical (FedAdOb, Fig. 4)", figure4, _SHARED),
    _ONE_SEED("fao-fig5", "Images behind each defence (FedAdOb, Fig. 5)", figure5, models=True),
    _SEVERAL("fao-fig6", "Labels from gradients, two classes (FedAdOb, Fig. 6)", figure6),
)
