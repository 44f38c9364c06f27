"""Names <-> names: templates, invertible transforms, and the rules that pair names through them."""

from .rules import MAX_SUGGESTIONS as MAX_SUGGESTIONS
from .rules import Rule as Rule
from .rules import Step as Step
from .rules import assign_rules as assign_rules
from .rules import convert_tensors as convert_tensors
from .rules import inverse as inverse
from .rules import name_faults as name_faults
from .rules import raise_faults as raise_faults
from .rules import rule as rule
from .templates import TemplateIndex as TemplateIndex
from .templates import match_template as match_template
from .transforms import DELETE as DELETE
from .transforms import Chain as Chain
from .transforms import Copy as Copy
from .transforms import Each as Each
from .transforms import Join as Join
from .transforms import Keep as Keep
from .transforms import Permute as Permute
from .transforms import Split as Split
from .transforms import Stack as Stack
from .transforms import Tie as Tie
from .transforms import Transform as Transform
from .transforms import Transpose as Transpose
from .transforms import Unstack as Unstack
