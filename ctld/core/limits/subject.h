// The subjects of this folder; see ctld/core/subject.h.
#pragma once

#include "ctld/core/subject.h"

namespace gantry::core {

extern const Subject kUseLimits, kUseDecay;
// What messages are handled here.
extern const Subject kUseMessages;

}  // namespace gantry::core
