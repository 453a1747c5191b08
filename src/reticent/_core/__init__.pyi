from . import evolving as evolving
from . import random as random
from . import stream as stream
from . import table as table
