// Runtime with all of its parts: the only file that sees the memory of every folder.
#include "ctld/core/runtime.h"

#include "ctld/core/figures.h"
#include "ctld/core/job/memory.h"
#include "ctld/core/limits/memory.h"
#include "ctld/core/money/memory.h"
#include "ctld/core/neighbours/memory.h"
#include "ctld/core/node/memory.h"
#include "ctld/core/node_links.h"
#include "ctld/core/notify/memory.h"
#include "ctld/core/plan_memory.h"
#include "ctld/core/services/memory.h"
#include "ctld/core/tenancy/memory.h"
#include "ctld/core/turn/memory.h"
#include "ctld/core/view_memory.h"

namespace gantry::core {

Runtime::Runtime()
    : links(std::make_unique<NodeLinks>()),
      plan(std::make_unique<PlanMemory>()),
      views(std::make_unique<ViewMemory>()),
      figures(std::make_unique<Figures>()),
      turn(std::make_unique<TurnMemory>()),
      job(std::make_unique<JobMemory>()),
      node(std::make_unique<NodeMemory>()),
      tenancy(std::make_unique<TenancyMemory>()),
      money(std::make_unique<BudgetMemory>()),
      limits(std::make_unique<LimitMemory>()),
      neighbours(std::make_unique<NeighbourMemory>()),
      notify(std::make_unique<NotifyMemory>()),
      services(std::make_unique<ServiceMemory>()) {}

Runtime::~Runtime() = default;

}  // namespace gantry::core
