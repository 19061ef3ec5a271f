// The examples in docs/ load without warnings, and the reference page agrees with the tables in the
// code.
#include "tests/tenancy/sample.h"

#include <algorithm>

#include "common/text/hostlist.h"
#include "config/config.h"
#include "config/tenancy/capacity.h"
#include "config/tenancy/files/load.h"
#include "config/tenancy/reference.h"
#include "tests/golden/golden.h"
#include "tests/places.h"

using namespace gantry;
using namespace gantry::tenancy;
using namespace gantry::test;

namespace {

const std::string kExamples = source_dir() + "/docs/examples/tenants/";

std::vector<proto::NodesAlike> nodes_of(const std::string& config_file) {
  const auto config = load_config(config_file);
  REQUIRE_MESSAGE(config, config.error().message);
  std::vector<proto::NodesAlike> out;
  for (const NodeConfig& node : config->nodes) {
    proto::NodesAlike& one = out.emplace_back();
    one.nodes = node.name;
    one.features = node.features;
    one.gpu_model = node.gpu_model;
    one.each.row(Resource::gpu) = std::int64_t{node.gpus} * kGpuUnit;
    one.each.row(Resource::cpu) = std::int64_t{node.cpus} * 1000;
    one.each.row(Resource::memory) = node.memory;
    one.each.row(Resource::scratch) = node.scratch;
  }
  return out;
}

std::int64_t owned(const std::vector<Document>& documents, Resource resource) {
  std::int64_t sum = 0;
  for (Document document : documents)
    if (const auto* quota = quota_of(document))
      for (const QuotaLine& line : *quota)
        if (line.resource == resource) sum += line.nominal;
  return sum;
}

}  // namespace

TEST_CASE("the example of fifteen teams on 640 GPUs loads, fits, and gives no warning") {
  const auto nodes = nodes_of(kExamples + "fifteen/gantry.yaml");
  LoadOptions options;
  options.nodes = &nodes;
  const std::vector<std::string> paths{kExamples + "fifteen/tenants"};
  const auto loaded = load_documents(paths, options);
  REQUIRE_MESSAGE(loaded, loaded.error().message);
  CHECK(loaded->notes.empty());
  const auto& documents = loaded->documents;
  CHECK(std::count_if(documents.begin(), documents.end(),
                      [](const auto& d) { return std::holds_alternative<Tenant>(d); }) == 15);
  const Capacity capacity = capacity_of(documents, nodes);
  CHECK(capacity.total[Resource::gpu] == 640'000);
  CHECK(capacity.flavors.at("a100") == capacity.total);
  CHECK(owned(documents, Resource::gpu) == 640'000);
  CHECK(warnings_of(documents, nodes) == std::vector<std::string>{});
  CHECK(read_all(to_text(documents)) == documents);
}

TEST_CASE("the example of three teams on 24 GPUs loads, fits, and gives no warning") {
  const auto nodes = nodes_of(kExamples + "three-teams/gantry.yaml");
  LoadOptions options;
  options.nodes = &nodes;
  const std::vector<std::string> paths{kExamples + "three-teams/tenants.yaml"};
  const auto loaded = load_documents(paths, options);
  REQUIRE_MESSAGE(loaded, loaded.error().message);
  CHECK(owned(loaded->documents, Resource::gpu) == 24'000);
  CHECK(warnings_of(loaded->documents, nodes) == std::vector<std::string>{});
  const Tenant& alpha = std::get<Tenant>(loaded->documents[0]);
  CHECK(alpha.quota[1] == QuotaLine{"", Resource::cpu, 64'000, 64'000, {}});
  CHECK(alpha.classes[0] == TenantClass{"critical", 500'000});
}

TEST_CASE("the reference page of document kinds is up to date") {
  check_golden("docs/tenancy-kinds.md", kinds_page());
}
