// The documents of a controller, as the real one keeps them, behind the fake one: what gtenant does
// over several commands can be tested without daemons.
#pragma once

#include "tests/cli/fake_controller.h"

namespace gantry::test {

class TenancyStore {
 public:
  explicit TenancyStore(FakeController& fake);

  std::vector<tenancy::Document> documents;  // sorted
  std::uint64_t revision = 0;
  std::vector<std::vector<tenancy::Document>> earlier;  // by revision
  std::vector<proto::TenancyRevision> history;          // oldest first
  std::vector<proto::NodesAlike> nodes;
  std::map<std::string, proto::TenantUse> use;  // of tenants that have jobs

 private:
  proto::TenancyPlanned apply(const proto::ApplyTenancy& request);
};

}  // namespace gantry::test
