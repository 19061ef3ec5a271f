// The subjects of this folder; see ctld/core/subject.h.
#pragma once

#include "ctld/core/subject.h"

namespace gantry::core {

extern const Subject kWindows;
// What messages are handled here.
extern const Subject kClusterMessages, kEnrollmentMessages, kListNodesMessages,
    kNodeRegisterMessages, kNodeReportMessages, kReservationMessages;

}  // namespace gantry::core
