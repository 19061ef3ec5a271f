// The subjects of this folder; see ctld/core/subject.h.
#pragma once

#include "ctld/core/subject.h"

namespace gantry::core {

extern const Subject kTriggers;
// What messages are handled here.
extern const Subject kTriggerMessages;

}  // namespace gantry::core
