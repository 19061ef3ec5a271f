// Texts of requests: every one of them is looked at before a handler sees it, by its field's name.
//
// Words (names, comments, reasons, keys: all that is not named below) are UTF-8 without control
// characters (common/text/printable.h), documents of tenants may have several lines. Paths may have
// any byte but control characters: on Linux they need not be UTF-8, and listings show such a byte
// as U+FFFD. Data (scripts, arguments, values of variables) is not looked at here: it is not shown.
#pragma once

#include "ctld/core/core.h"

namespace gantry::core {

Result<void> check_texts(const ClientMessage& message);

// What nodes say of themselves and of jobs is not refused, but made printable, and cut where a text
// is longer than anything that a node has to say.
void clean_texts(NodeMessage& message);

}  // namespace gantry::core
