// Services as a subject.
#include "ctld/core/services/subject.h"

#include "ctld/core/services/reconcile.h"

namespace gantry::core {

const Subject kServices{.name = "services", .due = services_due, .ring = run_services};

}  // namespace gantry::core
