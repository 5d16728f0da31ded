from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Phase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PHASE_UNSPECIFIED: _ClassVar[Phase]
    TRAIN: _ClassVar[Phase]
    PREDICT: _ClassVar[Phase]
    DISCLOSE: _ClassVar[Phase]

class Point(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    POINT_UNSPECIFIED: _ClassVar[Point]
    EMBEDDING: _ClassVar[Point]
    GRADIENT: _ClassVar[Point]
    SCORES: _ClassVar[Point]
    PARAMETERS: _ClassVar[Point]
    DATASET: _ClassVar[Point]
    AUXILIARY: _ClassVar[Point]
    MOMENTS: _ClassVar[Point]
    UPDATE: _ClassVar[Point]
    MASKED_UPDATE: _ClassVar[Point]
    SHARES: _ClassVar[Point]
    OPENING: _ClassVar[Point]
PHASE_UNSPECIFIED: Phase
TRAIN: Phase
PREDICT: Phase
DISCLOSE: Phase
POINT_UNSPECIFIED: Point
EMBEDDING: Point
GRADIENT: Point
SCORES: Point
PARAMETERS: Point
DATASET: Point
AUXILIARY: Point
MOMENTS: Point
UPDATE: Point
MASKED_UPDATE: Point
SHARES: Point
OPENING: Point

class Exchange(_message.Message):
    __slots__ = ("run", "phase", "round", "step")
    RUN_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    run: str
    phase: Phase
    round: int
    step: int
    def __init__(self, run: _Optional[str] = ..., phase: _Optional[_Union[Phase, str]] = ..., round: _Optional[int] = ..., step: _Optional[int] = ...) -> None: ...

class Tensor(_message.Message):
    __slots__ = ("name", "dtype", "shape", "data")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    name: str
    dtype: str
    shape: _containers.RepeatedScalarFieldContainer[int]
    data: bytes
    def __init__(self, name: _Optional[str] = ..., dtype: _Optional[str] = ..., shape: _Optional[_Iterable[int]] = ..., data: _Optional[bytes] = ...) -> None: ...

class Released(_message.Message):
    __slots__ = ("sender", "exchange", "point", "rows", "tensors", "withheld")
    SENDER_FIELD_NUMBER: _ClassVar[int]
    EXCHANGE_FIELD_NUMBER: _ClassVar[int]
    POINT_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    TENSORS_FIELD_NUMBER: _ClassVar[int]
    WITHHELD_FIELD_NUMBER: _ClassVar[int]
    sender: str
    exchange: Exchange
    point: Point
    rows: bytes
    tensors: _containers.RepeatedCompositeFieldContainer[Tensor]
    withheld: bool
    def __init__(self, sender: _Optional[str] = ..., exchange: _Optional[_Union[Exchange, _Mapping]] = ..., point: _Optional[_Union[Point, str]] = ..., rows: _Optional[bytes] = ..., tensors: _Optional[_Iterable[_Union[Tensor, _Mapping]]] = ..., withheld: bool = ...) -> None: ...

class Column(_message.Message):
    __slots__ = ("name", "low", "high", "alphabet", "pixel")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    ALPHABET_FIELD_NUMBER: _ClassVar[int]
    PIXEL_FIELD_NUMBER: _ClassVar[int]
    name: str
    low: float
    high: float
    alphabet: _containers.RepeatedScalarFieldContainer[float]
    pixel: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, name: _Optional[str] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., alphabet: _Optional[_Iterable[float]] = ..., pixel: _Optional[_Iterable[int]] = ...) -> None: ...

class Signature(_message.Message):
    __slots__ = ("certificates", "value")
    CERTIFICATES_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    certificates: str
    value: str
    def __init__(self, certificates: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class PartyInfo(_message.Message):
    __slots__ = ("name", "role", "columns", "n_classes", "classes", "train_rows", "predict_rows", "mask_key", "signature", "label", "categories")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    N_CLASSES_FIELD_NUMBER: _ClassVar[int]
    CLASSES_FIELD_NUMBER: _ClassVar[int]
    TRAIN_ROWS_FIELD_NUMBER: _ClassVar[int]
    PREDICT_ROWS_FIELD_NUMBER: _ClassVar[int]
    MASK_KEY_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    CATEGORIES_FIELD_NUMBER: _ClassVar[int]
    name: str
    role: str
    columns: _containers.RepeatedCompositeFieldContainer[Column]
    n_classes: int
    classes: _containers.RepeatedScalarFieldContainer[str]
    train_rows: int
    predict_rows: int
    mask_key: str
    signature: Signature
    label: Column
    categories: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., role: _Optional[str] = ..., columns: _Optional[_Iterable[_Union[Column, _Mapping]]] = ..., n_classes: _Optional[int] = ..., classes: _Optional[_Iterable[str]] = ..., train_rows: _Optional[int] = ..., predict_rows: _Optional[int] = ..., mask_key: _Optional[str] = ..., signature: _Optional[_Union[Signature, _Mapping]] = ..., label: _Optional[_Union[Column, _Mapping]] = ..., categories: _Optional[_Iterable[str]] = ...) -> None: ...

class Training(_message.Message):
    __slots__ = ("optimizer", "epochs", "batch_size", "learning_rate", "l2", "patience", "tolerance", "penalise_bias", "staleness", "protection")
    OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
    EPOCHS_FIELD_NUMBER: _ClassVar[int]
    BATCH_SIZE_FIELD_NUMBER: _ClassVar[int]
    LEARNING_RATE_FIELD_NUMBER: _ClassVar[int]
    L2_FIELD_NUMBER: _ClassVar[int]
    PATIENCE_FIELD_NUMBER: _ClassVar[int]
    TOLERANCE_FIELD_NUMBER: _ClassVar[int]
    PENALISE_BIAS_FIELD_NUMBER: _ClassVar[int]
    STALENESS_FIELD_NUMBER: _ClassVar[int]
    PROTECTION_FIELD_NUMBER: _ClassVar[int]
    optimizer: str
    epochs: int
    batch_size: int
    learning_rate: float
    l2: float
    patience: int
    tolerance: float
    penalise_bias: bool
    staleness: int
    protection: str
    def __init__(self, optimizer: _Optional[str] = ..., epochs: _Optional[int] = ..., batch_size: _Optional[int] = ..., learning_rate: _Optional[float] = ..., l2: _Optional[float] = ..., patience: _Optional[int] = ..., tolerance: _Optional[float] = ..., penalise_bias: bool = ..., staleness: _Optional[int] = ..., protection: _Optional[str] = ...) -> None: ...

class Horizontal(_message.Message):
    __slots__ = ("rounds", "local_epochs", "local_steps", "weights", "participants", "secure_aggregation", "absent", "method")
    ROUNDS_FIELD_NUMBER: _ClassVar[int]
    LOCAL_EPOCHS_FIELD_NUMBER: _ClassVar[int]
    LOCAL_STEPS_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    PARTICIPANTS_FIELD_NUMBER: _ClassVar[int]
    SECURE_AGGREGATION_FIELD_NUMBER: _ClassVar[int]
    ABSENT_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    rounds: int
    local_epochs: int
    local_steps: int
    weights: str
    participants: int
    secure_aggregation: bool
    absent: str
    method: str
    def __init__(self, rounds: _Optional[int] = ..., local_epochs: _Optional[int] = ..., local_steps: _Optional[int] = ..., weights: _Optional[str] = ..., participants: _Optional[int] = ..., secure_aggregation: bool = ..., absent: _Optional[str] = ..., method: _Optional[str] = ...) -> None: ...

class Federation(_message.Message):
    __slots__ = ("run", "parties", "rows", "train", "predict", "training", "lab", "aggregator", "model", "horizontal", "nonce")
    RUN_FIELD_NUMBER: _ClassVar[int]
    PARTIES_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    TRAIN_FIELD_NUMBER: _ClassVar[int]
    PREDICT_FIELD_NUMBER: _ClassVar[int]
    TRAINING_FIELD_NUMBER: _ClassVar[int]
    LAB_FIELD_NUMBER: _ClassVar[int]
    AGGREGATOR_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    HORIZONTAL_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    run: str
    parties: _containers.RepeatedCompositeFieldContainer[PartyInfo]
    rows: int
    train: bytes
    predict: bytes
    training: Training
    lab: bool
    aggregator: str
    model: str
    horizontal: Horizontal
    nonce: str
    def __init__(self, run: _Optional[str] = ..., parties: _Optional[_Iterable[_Union[PartyInfo, _Mapping]]] = ..., rows: _Optional[int] = ..., train: _Optional[bytes] = ..., predict: _Optional[bytes] = ..., training: _Optional[_Union[Training, _Mapping]] = ..., lab: bool = ..., aggregator: _Optional[str] = ..., model: _Optional[str] = ..., horizontal: _Optional[_Union[Horizontal, _Mapping]] = ..., nonce: _Optional[str] = ...) -> None: ...

class Done(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DescribeRequest(_message.Message):
    __slots__ = ("run", "nonce")
    RUN_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    run: str
    nonce: str
    def __init__(self, run: _Optional[str] = ..., nonce: _Optional[str] = ...) -> None: ...

class SaltRequest(_message.Message):
    __slots__ = ("run",)
    RUN_FIELD_NUMBER: _ClassVar[int]
    run: str
    def __init__(self, run: _Optional[str] = ...) -> None: ...

class Salted(_message.Message):
    __slots__ = ("salt", "mode", "ids")
    SALT_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    salt: bytes
    mode: str
    ids: int
    def __init__(self, salt: _Optional[bytes] = ..., mode: _Optional[str] = ..., ids: _Optional[int] = ...) -> None: ...

class IdentifyRequest(_message.Message):
    __slots__ = ("run", "salts", "first")
    RUN_FIELD_NUMBER: _ClassVar[int]
    SALTS_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    run: str
    salts: bytes
    first: int
    def __init__(self, run: _Optional[str] = ..., salts: _Optional[bytes] = ..., first: _Optional[int] = ...) -> None: ...

class Identities(_message.Message):
    __slots__ = ("digests", "split")
    DIGESTS_FIELD_NUMBER: _ClassVar[int]
    SPLIT_FIELD_NUMBER: _ClassVar[int]
    digests: bytes
    split: bytes
    def __init__(self, digests: _Optional[bytes] = ..., split: _Optional[bytes] = ...) -> None: ...

class BlindRequest(_message.Message):
    __slots__ = ("run", "salts", "party", "first", "ids", "elements")
    RUN_FIELD_NUMBER: _ClassVar[int]
    SALTS_FIELD_NUMBER: _ClassVar[int]
    PARTY_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    ELEMENTS_FIELD_NUMBER: _ClassVar[int]
    run: str
    salts: bytes
    party: str
    first: int
    ids: int
    elements: bytes
    def __init__(self, run: _Optional[str] = ..., salts: _Optional[bytes] = ..., party: _Optional[str] = ..., first: _Optional[int] = ..., ids: _Optional[int] = ..., elements: _Optional[bytes] = ...) -> None: ...

class Blinded(_message.Message):
    __slots__ = ("elements",)
    ELEMENTS_FIELD_NUMBER: _ClassVar[int]
    elements: bytes
    def __init__(self, elements: _Optional[bytes] = ...) -> None: ...

class PrepareRequest(_message.Message):
    __slots__ = ("federation", "order", "salts")
    FEDERATION_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    SALTS_FIELD_NUMBER: _ClassVar[int]
    federation: Federation
    order: bytes
    salts: bytes
    def __init__(self, federation: _Optional[_Union[Federation, _Mapping]] = ..., order: _Optional[bytes] = ..., salts: _Optional[bytes] = ...) -> None: ...

class Standing(_message.Message):
    __slots__ = ("version", "incarnation", "stage", "learned", "released", "federation", "stops")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    LEARNED_FIELD_NUMBER: _ClassVar[int]
    RELEASED_FIELD_NUMBER: _ClassVar[int]
    FEDERATION_FIELD_NUMBER: _ClassVar[int]
    STOPS_FIELD_NUMBER: _ClassVar[int]
    version: str
    incarnation: int
    stage: str
    learned: int
    released: int
    federation: bytes
    stops: bool
    def __init__(self, version: _Optional[str] = ..., incarnation: _Optional[int] = ..., stage: _Optional[str] = ..., learned: _Optional[int] = ..., released: _Optional[int] = ..., federation: _Optional[bytes] = ..., stops: bool = ...) -> None: ...

class RejoinRequest(_message.Message):
    __slots__ = ("run", "standing")
    RUN_FIELD_NUMBER: _ClassVar[int]
    STANDING_FIELD_NUMBER: _ClassVar[int]
    run: str
    standing: Standing
    def __init__(self, run: _Optional[str] = ..., standing: _Optional[_Union[Standing, _Mapping]] = ...) -> None: ...

class StepRequest(_message.Message):
    __slots__ = ("exchange", "rows", "received", "participants")
    EXCHANGE_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    PARTICIPANTS_FIELD_NUMBER: _ClassVar[int]
    exchange: Exchange
    rows: bytes
    received: Released
    participants: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, exchange: _Optional[_Union[Exchange, _Mapping]] = ..., rows: _Optional[bytes] = ..., received: _Optional[_Union[Released, _Mapping]] = ..., participants: _Optional[_Iterable[str]] = ...) -> None: ...

class StepReply(_message.Message):
    __slots__ = ("released", "stop")
    RELEASED_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    released: Released
    stop: bool
    def __init__(self, released: _Optional[_Union[Released, _Mapping]] = ..., stop: bool = ...) -> None: ...

class SeedRequest(_message.Message):
    __slots__ = ("run",)
    RUN_FIELD_NUMBER: _ClassVar[int]
    run: str
    def __init__(self, run: _Optional[str] = ...) -> None: ...

class Seeded(_message.Message):
    __slots__ = ("seed",)
    SEED_FIELD_NUMBER: _ClassVar[int]
    seed: bytes
    def __init__(self, seed: _Optional[bytes] = ...) -> None: ...

class DealRequest(_message.Message):
    __slots__ = ("run", "step")
    RUN_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    run: str
    step: int
    def __init__(self, run: _Optional[str] = ..., step: _Optional[int] = ...) -> None: ...

class MaskShares(_message.Message):
    __slots__ = ("numbers",)
    NUMBERS_FIELD_NUMBER: _ClassVar[int]
    numbers: bytes
    def __init__(self, numbers: _Optional[bytes] = ...) -> None: ...

class TrainRequest(_message.Message):
    __slots__ = ("run",)
    RUN_FIELD_NUMBER: _ClassVar[int]
    run: str
    def __init__(self, run: _Optional[str] = ...) -> None: ...

class Trained(_message.Message):
    __slots__ = ("first", "steps")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    first: int
    steps: int
    def __init__(self, first: _Optional[int] = ..., steps: _Optional[int] = ...) -> None: ...

class EpochRequest(_message.Message):
    __slots__ = ("run", "number", "stop")
    RUN_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    run: str
    number: int
    stop: bool
    def __init__(self, run: _Optional[str] = ..., number: _Optional[int] = ..., stop: bool = ...) -> None: ...

class Order(_message.Message):
    __slots__ = ("rows",)
    ROWS_FIELD_NUMBER: _ClassVar[int]
    rows: bytes
    def __init__(self, rows: _Optional[bytes] = ...) -> None: ...

class DiscloseRequest(_message.Message):
    __slots__ = ("run", "version", "to")
    RUN_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    run: str
    version: int
    to: str
    def __init__(self, run: _Optional[str] = ..., version: _Optional[int] = ..., to: _Optional[str] = ...) -> None: ...

class Disclosures(_message.Message):
    __slots__ = ("released",)
    RELEASED_FIELD_NUMBER: _ClassVar[int]
    released: _containers.RepeatedCompositeFieldContainer[Released]
    def __init__(self, released: _Optional[_Iterable[_Union[Released, _Mapping]]] = ...) -> None: ...

class DeliverRequest(_message.Message):
    __slots__ = ("released",)
    RELEASED_FIELD_NUMBER: _ClassVar[int]
    released: Released
    def __init__(self, released: _Optional[_Union[Released, _Mapping]] = ...) -> None: ...

class BeginRequest(_message.Message):
    __slots__ = ("run", "version")
    RUN_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    run: str
    version: int
    def __init__(self, run: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...

class ForwardRequest(_message.Message):
    __slots__ = ("exchange", "rows")
    EXCHANGE_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    exchange: Exchange
    rows: bytes
    def __init__(self, exchange: _Optional[_Union[Exchange, _Mapping]] = ..., rows: _Optional[bytes] = ...) -> None: ...

class PredictRequest(_message.Message):
    __slots__ = ("embedding",)
    EMBEDDING_FIELD_NUMBER: _ClassVar[int]
    embedding: Released
    def __init__(self, embedding: _Optional[_Union[Released, _Mapping]] = ...) -> None: ...

class QueryRequest(_message.Message):
    __slots__ = ("rows",)
    ROWS_FIELD_NUMBER: _ClassVar[int]
    rows: str
    def __init__(self, rows: _Optional[str] = ...) -> None: ...

class Answers(_message.Message):
    __slots__ = ("numbers", "ids", "classes", "scores", "label")
    NUMBERS_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    CLASSES_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    numbers: bytes
    ids: _containers.RepeatedScalarFieldContainer[str]
    classes: _containers.RepeatedScalarFieldContainer[str]
    scores: Tensor
    label: str
    def __init__(self, numbers: _Optional[bytes] = ..., ids: _Optional[_Iterable[str]] = ..., classes: _Optional[_Iterable[str]] = ..., scores: _Optional[_Union[Tensor, _Mapping]] = ..., label: _Optional[str] = ...) -> None: ...

class Guess(_message.Message):
    __slots__ = ("attack", "values", "status")
    ATTACK_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    attack: str
    values: Tensor
    status: bytes
    def __init__(self, attack: _Optional[str] = ..., values: _Optional[_Union[Tensor, _Mapping]] = ..., status: _Optional[bytes] = ...) -> None: ...

class SubmissionRequest(_message.Message):
    __slots__ = ("run", "sender", "scored_set", "rows", "guesses", "estimates", "step")
    RUN_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    SCORED_SET_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    GUESSES_FIELD_NUMBER: _ClassVar[int]
    ESTIMATES_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    run: str
    sender: str
    scored_set: str
    rows: bytes
    guesses: _containers.RepeatedCompositeFieldContainer[Guess]
    estimates: str
    step: int
    def __init__(self, run: _Optional[str] = ..., sender: _Optional[str] = ..., scored_set: _Optional[str] = ..., rows: _Optional[bytes] = ..., guesses: _Optional[_Iterable[_Union[Guess, _Mapping]]] = ..., estimates: _Optional[str] = ..., step: _Optional[int] = ...) -> None: ...

class Receipt(_message.Message):
    __slots__ = ("rows", "attacks", "errors")
    class ErrorsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    ROWS_FIELD_NUMBER: _ClassVar[int]
    ATTACKS_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    rows: int
    attacks: int
    errors: _containers.ScalarMap[str, float]
    def __init__(self, rows: _Optional[int] = ..., attacks: _Optional[int] = ..., errors: _Optional[_Mapping[str, float]] = ...) -> None: ...

class Head(_message.Message):
    __slots__ = ("log", "records", "link")
    LOG_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    LINK_FIELD_NUMBER: _ClassVar[int]
    log: str
    records: int
    link: bytes
    def __init__(self, log: _Optional[str] = ..., records: _Optional[int] = ..., link: _Optional[bytes] = ...) -> None: ...

class PartyHeads(_message.Message):
    __slots__ = ("party", "heads", "federation", "signature", "nonce")
    PARTY_FIELD_NUMBER: _ClassVar[int]
    HEADS_FIELD_NUMBER: _ClassVar[int]
    FEDERATION_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    party: str
    heads: _containers.RepeatedCompositeFieldContainer[Head]
    federation: bytes
    signature: Signature
    nonce: str
    def __init__(self, party: _Optional[str] = ..., heads: _Optional[_Iterable[_Union[Head, _Mapping]]] = ..., federation: _Optional[bytes] = ..., signature: _Optional[_Union[Signature, _Mapping]] = ..., nonce: _Optional[str] = ...) -> None: ...

class FinishedRequest(_message.Message):
    __slots__ = ("run", "sender", "heads")
    RUN_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    HEADS_FIELD_NUMBER: _ClassVar[int]
    run: str
    sender: str
    heads: PartyHeads
    def __init__(self, run: _Optional[str] = ..., sender: _Optional[str] = ..., heads: _Optional[_Union[PartyHeads, _Mapping]] = ...) -> None: ...

class StopRequest(_message.Message):
    __slots__ = ("run", "failure", "heads")
    RUN_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    HEADS_FIELD_NUMBER: _ClassVar[int]
    run: str
    failure: str
    heads: _containers.RepeatedCompositeFieldContainer[PartyHeads]
    def __init__(self, run: _Optional[str] = ..., failure: _Optional[str] = ..., heads: _Optional[_Iterable[_Union[PartyHeads, _Mapping]]] = ...) -> None: ...
