// Manifests and documents with random damage: nothing may break. A refusal has to name the place,
// and accepted documents can be written and read again as the same.
#include "tests/tenancy/sample.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "config/tenancy/files/load.h"
#include "config/tenancy/write.h"
#include "tests/places.h"

using namespace gantry;
using namespace gantry::tenancy;
using namespace gantry::test;

namespace {

using Random = std::mt19937_64;

std::string slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// Each of these texts is valid on its own.
std::vector<std::string> originals() {
  const std::string root = source_dir();
  std::vector<std::string> out{slurp(root + "/docs/examples/tenants/three-teams/tenants.yaml")};
  for (const std::string name : {"teams", "kueue", "exported"})
    out.push_back(slurp(root + "/tests/tenancy/manifests/" + name + ".yaml"));
  std::string fifteen;
  for (const std::string name : {"00-cluster", "10-products", "20-research", "30-dev"})
    fifteen += "---\n" + slurp(root + "/docs/examples/tenants/fifteen/tenants/" + name + ".yaml");
  out.push_back(fifteen);
  return out;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

std::string damaged(const std::vector<std::string>& texts, Random& random) {
  std::vector<std::string> lines = lines_of(texts[random() % texts.size()]);
  static const std::vector<std::string> kValues{
      "-1",  "[]",   "{}",    "null", "1e99", "99999999999999999999",
      "0.5", "\"\"", "*none", "Any",  "10%",  "a: b: c",
      "1Ei", "true", "n[1-",  "-x"};
  for (std::uint64_t n = 1 + random() % 3; n > 0 && !lines.empty(); --n) {
    const std::size_t at = random() % lines.size();
    std::string& line = lines[at];
    switch (random() % 7) {
      case 0: lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at)); break;
      case 1: lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at), line); break;
      case 2: std::swap(line, lines[random() % lines.size()]); break;
      case 3: line.insert(0, "  "); break;
      case 4:
        if (!line.empty()) line[random() % line.size()] = static_cast<char>(32 + random() % 95);
        break;
      case 5:
        if (const std::size_t colon = line.find(": "); colon != std::string::npos)
          line = line.substr(0, colon + 2) + kValues[random() % kValues.size()];
        break;
      default:
        if (!line.empty()) line.resize(random() % line.size());
    }
  }
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

}  // namespace

TEST_CASE("a damaged file is refused with a place, or its documents can be written and read") {
  const auto texts = originals();
  const int cases = std::getenv("GANTRY_LONG") == nullptr ? 1'500 : 20'000;
  std::vector<proto::NodesAlike> nodes(1);
  nodes[0].nodes = "n[1-4]";
  nodes[0].each.row(Resource::gpu) = 8'000;
  nodes[0].each.row(Resource::cpu) = 64'000;
  int accepted = 0;
  for (int i = 0; i < cases; ++i) {
    Random random(static_cast<std::uint64_t>(i));
    const std::string text = damaged(texts, random);
    CAPTURE(i);
    CAPTURE(text);
    LoadOptions options;
    options.nodes = &nodes;
    const auto loaded = load_text(text, "m.yaml", options);
    if (!loaded) {
      const std::string& message = loaded.error().message;
      REQUIRE_MESSAGE(message.starts_with("m.yaml"), message);
      REQUIRE_MESSAGE(message.find("alloc") == std::string::npos, message);
      continue;
    }
    ++accepted;
    const auto again = load_text(to_text(loaded->documents), "again.yaml", {});
    REQUIRE_MESSAGE(again, again.error().message);
    REQUIRE(again->documents == loaded->documents);
  }
  CHECK(accepted > cases / 20);  // Some damaged files are still accepted.
  CHECK(accepted < cases * 9 / 10);
}

namespace {

// A tenant with some of the keys below, each with one of its values. Names that have a point in
// them, empty maps and empty texts are what a comparison by path might confuse.
std::string random_tenant(Random& random) {
  static const std::vector<std::vector<std::string>> kLines{
      {"label_rules: {code: {}}", "label_rules: {code: {}, team: {values: [a, b]}}",
       "label_rules: {code: {values: [a], default: a}}"},
      {"labels: {a: \"\"}", "labels: {a: b, a.b: c}", "labels: {a: \"b, c\"}"},
      {"projects: {p: {shares: 1}}", "projects: {p: {users: {shares: 2}}}",
       "projects: {p.users: {shares: 2}, p: {}}"},
      {"limits: {per_job: {}}", "limits: {per_job: {gpu: 8}}", "limits: {queued_jobs: 0}"},
      {"quota: {gpu: 8}", "quota: {gpu: {nominal: 8, lend: 0}}",
       "quota: {flavors: {a.gpu: {gpu: 8}}}", "quota: {flavors: {a: {gpu: 8}}}"},
      {"node_pools: [a, b]", "node_pools: [b]", "node_pools: []"},
      {"security: {registries: [a.b/c]}", "security: {sandbox: vm}"},
      {"roles: {user: {users: [ann]}}", "roles: {user: {groups: [ann]}}",
       "roles: {user: {users: [ann], until: {ann: 2026-12-31}}, r: {users: [ann]}}"},
      {"classes: {a: 1}", "classes: {a: -1, b: 2}"},
      {"cohort: c"},
      {"weight: 0", "weight: 1.5"},
      {"own_queue: false"}};
  std::string out = "apiVersion: gantry/v1\nkind: Tenant\nname: t\n";
  for (const auto& choices : kLines)
    if (const std::size_t at = random() % (2 * choices.size()); at < choices.size())
      out += choices[at] + "\n";
  return out;
}

}  // namespace

TEST_CASE("whatever differs between documents is in the plan, and is gone when it is applied") {
  int changed = 0;
  for (std::uint64_t i = 0; i < 3'000; ++i) {
    Random random(i);
    const std::string texts[] = {random_tenant(random), random_tenant(random)};
    CAPTURE(texts[0]);
    CAPTURE(texts[1]);
    const auto old = read_all(texts[0]);
    const auto fresh = read_all(texts[1]);
    const auto plan = difference(old, fresh);
    REQUIRE(plan.size() == 1);
    std::vector<Document> apply;
    if (plan[0].action == proto::ChangeAction::changed) apply.push_back(fresh[0]);
    changed += static_cast<int>(apply.size());
    REQUIRE(plan[0].changes.empty() == apply.empty());
    REQUIRE(with_changes(old, apply, {}) == fresh);
    REQUIRE(read_all(to_text(fresh)) == fresh);
  }
  CHECK(changed > 2'900);
}
