"""URI templates of resources: list them, and find the one that a URI belongs to.

`Templates` is for servers, and `Template` is a single one. Both need the extra `templates`: the
package uritemplate expands them, and each match is compared with its expansion. This room knows
`_common`. Begin with `_template`.
"""

from ._collection import Match, Templates
from ._template import InvalidTemplate, Template, Values

__all__ = ["InvalidTemplate", "Match", "Template", "Templates", "Values"]
