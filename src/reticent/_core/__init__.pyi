from . import evolving as evolving
from . import random as random
from . import table as table
