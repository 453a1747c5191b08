"""HL7 v2 messages (ADT) from a file or an MLLP port, as records of a stream.

The policy's `hl7` section says which field becomes which column. Messages of other trigger events are ignored. A
message that cannot be read becomes a dead letter, and the stream continues.
"""

from reticent.connectors.hl7.lines import Hl7Lines, Message
from reticent.connectors.hl7.mllp import MllpSource, check_port

__all__ = ["Hl7Lines", "Message", "MllpSource", "check_port"]
