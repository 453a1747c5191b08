from . import evolving as evolving
from . import random as random
from . import stream as stream
from . import series as series
from . import table as table
