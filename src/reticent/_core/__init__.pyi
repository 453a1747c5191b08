from . import random as random
from . import table as table
from . import stream as stream
