// The subjects of this folder; see ctld/core/subject.h.
#pragma once

#include "ctld/core/subject.h"

namespace gantry::core {

extern const Subject kAdmission, kRoles, kPriority;
// What messages are handled here.
extern const Subject kAccessMessages, kPriorityMessages, kQuotaAlertsMessages, kSecretMessages,
    kTenancyMessages, kTenantViewMessages;

}  // namespace gantry::core
