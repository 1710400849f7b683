"""The public names of the package: what `cant_do_that_anymore` exports."""

from ..habits.answers import read_answer as read_answer
from ..habits.base import Message as Message
from ..habits.chess.position import Position as Position
from ..habits.chess.position import read_positions as read_positions
from ..habits.chess.position import shipped_pool as shipped_pool
from ..habits.chess.reader import read_move as read_move
from ..habits.chess.rules import Rules as Rules
from ..habits.chess.rules import rules_named as rules_named
from ..habits.questions import QuestionChange as QuestionChange
from ..metrics.estimates import Estimate as Estimate
from ..providers.base import Answer as Answer
from ..runs.cost import ExpectedCost as ExpectedCost
from ..task.conditions import ConditionTemplate as ConditionTemplate
from ..task.conditions import question as question
from ..task.prompts import Wording as Wording
from ..task.scorer import judge as judge
from ..task.spec import Spec as Spec
from ..task.yes_no import read_yes_no as read_yes_no
from .functions import compare as compare
from .functions import estimate as estimate
from .functions import evaluate as evaluate
from .functions import experiment as experiment
from .functions import load as load
from .results import Comparison as Comparison
from .results import Experiment as Experiment
from .results import Run as Run
