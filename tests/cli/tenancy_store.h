// Keeps documents behind the fake controller as the real controller does, so that several gtenant
// commands in a row can be tested without daemons.
#pragma once

#include "tests/cli/fake_controller.h"

namespace gantry::test {

class TenancyStore {
 public:
  explicit TenancyStore(FakeController& fake);

  std::vector<tenancy::Document> documents;  // sorted by kind and name
  std::uint64_t revision = 0;
  std::vector<std::vector<tenancy::Document>> earlier;  // documents of each revision
  std::vector<proto::TenancyRevision> history;          // oldest first
  std::vector<proto::NodesAlike> nodes;
  std::map<std::string, proto::TenantUse> use;  // use of the tenants that have jobs

 private:
  proto::TenancyPlanned apply(const proto::ApplyTenancy& request);
};

}  // namespace gantry::test
