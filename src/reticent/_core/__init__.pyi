from . import evolving as evolving
from . import random as random
from . import series as series
from . import stream as stream
from . import table as table
from . import veil as veil
from . import verify as verify
from . import wire as wire
