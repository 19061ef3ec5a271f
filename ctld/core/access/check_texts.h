// Texts of requests: each is checked before a handler sees it, by the name of its field.
//
// Words are all texts that are not named below, such as names, comments, reasons and keys. They are
// UTF-8 without control characters (common/text/printable.h); documents of tenants may have several
// lines. Paths may have any byte except control characters, because on Linux they need not be
// UTF-8; listings show such a byte as U+FFFD. Data (scripts, arguments, values of variables) is not
// checked here, because it is not shown.
#pragma once

#include "common/proto/any/any_message.h"
#include "common/result.h"
#include "ctld/core/request.h"

namespace gantry::core {

Result<void> check_texts(const proto::AnyMessage& message);

// Texts in a node's message are not refused. They are made printable, and cut where they are longer
// than anything that a node has to say.
void clean_texts(NodeMessage& message);

}  // namespace gantry::core
