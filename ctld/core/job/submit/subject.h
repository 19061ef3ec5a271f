// The subjects of this folder; see ctld/core/subject.h.
#pragma once

#include "ctld/core/subject.h"

namespace gantry::core {

extern const Subject kSubmitMessages;

}  // namespace gantry::core
