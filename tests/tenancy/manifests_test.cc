// Manifests of Kubernetes and Kueue, as platform teams write them. The test compares the documents
// that they become, and the notes about everything else, with the files in golden/.
// GANTRY_UPDATE_GOLDEN=1 rewrites these files.
#include "tests/tenancy/sample.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "config/tenancy/files/load.h"
#include "config/tenancy/files/manifests.h"
#include "config/tenancy/write.h"
#include "tests/golden/golden.h"
#include "tests/places.h"

using namespace gantry;
using namespace gantry::tenancy;
using namespace gantry::test;

namespace {

const std::string kFolder = source_dir() + "/tests/tenancy/";

void check_documents(const std::string& name, const std::string& text) {
  check_golden("tests/tenancy/golden/" + name + ".txt", text);
}

std::string shown(const Loaded& loaded) {
  std::vector<Document> made = loaded.documents;
  std::erase_if(made, [](const Document& d) { return std::holds_alternative<Manifest>(d); });
  std::string text = to_text(made) + "\n";
  for (const std::string& note : loaded.notes) text += "# " + note + "\n";
  return text;
}

Loaded load(const std::string& name, const LoadOptions& options) {
  // Read by its name alone, so that no path of this machine is in the notes.
  auto loaded = load_text(source_text("tests/tenancy/manifests/" + name), name, options);
  REQUIRE_MESSAGE(loaded, loaded.error().message);
  return std::move(*loaded);
}

std::string load_error(const std::string& text, const LoadOptions& options = {}) {
  const auto loaded = load_text(text, "m.yaml", options);
  return loaded ? "accepted" : loaded.error().message;
}

std::string quota(const std::string& spec) {
  return "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: a}\nspec:\n" + spec;
}

std::string cluster_queue(const std::string& spec) {
  return "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nmetadata: {name: cq}\nspec:\n" +
         spec;
}

const std::string kProduction = "apiVersion: gantry/v1\nkind: Tier\nname: production\n";

}  // namespace

TEST_CASE("manifests of platform teams become the documents and notes of the golden files") {
  const auto known = read_all(kProduction);
  LoadOptions options;
  options.known = known;
  options.user_domain = "example.com";
  for (const std::string name : {"teams", "kueue", "exported", "policies"})
    check_documents(name, shown(load(name + ".yaml", options)));
}

// The files look as they do in a platform team's repository: a base layer, the teams, objects of
// v1beta2, a dump of a cluster, and a rendered chart with CRLF line ends.
TEST_CASE("a platform team's folder applies as it is, and the notes say what is not honoured") {
  std::vector<std::string> paths;
  for (const auto& file : std::filesystem::directory_iterator(kFolder + "manifests/platform"))
    paths.push_back(file.path().filename().string());
  std::sort(paths.begin(), paths.end());
  REQUIRE(paths.size() == 5);
  LoadOptions options;
  options.user_domain = "example.com";
  std::vector<Document> known = read_all(kProduction);
  std::string all;
  for (const std::string& path : paths) {
    CAPTURE(path);
    options.known = known;
    const Loaded loaded = load("platform/" + path, options);
    all += "# ---- " + path + "\n" + shown(loaded) + "\n";
    known = with_changes(known, loaded.documents, loaded.removals);
    // Applying the same file again changes nothing.
    options.known = known;
    const Loaded again = load("platform/" + path, options);
    CHECK(with_changes(known, again.documents, again.removals) == known);
  }
  check_documents("platform", all);
}

TEST_CASE("translated manifests can be written, read, and applied again without a change") {
  for (const std::string name : {"teams.yaml", "kueue.yaml", "exported.yaml", "policies.yaml"}) {
    CAPTURE(name);
    const Loaded first = load(name, {});
    LoadOptions again;
    again.known = first.documents;
    const Loaded second = load(name, again);
    CHECK(with_changes(first.documents, second.documents, second.removals) == first.documents);
    CHECK(read_all(to_text(first.documents)) == first.documents);
  }
}

TEST_CASE("a GPU label that names no model leaves documents that can be written and read") {
  const auto loaded = load_text(
      "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ResourceFlavor\nmetadata: {name: f}\n"
      "spec: {nodeLabels: {nvidia.com/gpu.product: \"NVIDIA-x9\u00e9\"}}\n",
      "m.yaml", {});
  REQUIRE_MESSAGE(loaded, loaded.error().message);
  const auto again = load_text(to_text(loaded->documents), "again.yaml", {});
  REQUIRE_MESSAGE(again, again.error().message);
  CHECK(again->documents == loaded->documents);
}

TEST_CASE("a manifest changes only its part of a tenant") {
  const auto known = read_all(
      "apiVersion: gantry/v1\nkind: Tenant\nname: a\nlabels: {x: y}\nprojects: {p: {shares: 3}}\n"
      "quota: {gpu: 8, scratch: 1Ti}\nroles: {user: {groups: [g]}}\n");
  LoadOptions options;
  options.known = known;
  const auto loaded = load_text(quota("  hard: {requests.nvidia.com/gpu: 4}\n"), "m.yaml", options);
  REQUIRE(loaded);
  const Tenant& t = std::get<Tenant>(loaded->documents.at(0));
  CHECK(t.quota == std::vector<QuotaLine>{{"", Resource::gpu, 4'000, 0, {}},
                                          {"", Resource::scratch, std::int64_t{1} << 40, {}, {}}});
  CHECK(t.labels.at("x") == "y");
  CHECK(t.projects.size() == 1);
  CHECK(t.grants.size() == 1);
}

TEST_CASE("a malformed manifest is refused with file, line and field") {
  CHECK(load_error(quota("  hard:\n    requests.cpu: lots\n")) ==
        "m.yaml:6:19: spec.hard.requests.cpu: \"lots\" is not a quantity; use a number, or one "
        "with m, k, M, G, T, P, Ki, Mi, Gi, Ti or Pi");
  CHECK(load_error(quota("  hard:\n    requests.memory: 800 Gi\n"))
            .starts_with("m.yaml:6:22: spec.hard.requests.memory: \"800 Gi\" is not a quantity"));
  CHECK(load_error(quota("  hard:\n    requests.nvidia.com/gpu: 500m\n")) ==
        "m.yaml:6:30: spec.hard.requests.nvidia.com/gpu: \"500m\" is not a whole number of GPUs");
  CHECK(load_error(quota("  hrd: {}\n")) ==
        "m.yaml:5:3: spec: unknown field `hrd`; did you mean `hard`?");
  CHECK(load_error(quota("  hard: {request.cpu: 4}\n")) ==
        "m.yaml:5:10: spec.hard: there is no resource `request.cpu` that a quota could limit");
  CHECK(load_error(quota("  hard: [4]\n")) == "m.yaml:5:9: spec.hard: needs keys, not a list");
  CHECK(load_error(quota("  hard:\n")) == "m.yaml:5:3: spec: `hard` is missing");
  CHECK(load_error(quota("  {}\n")) == "m.yaml:5:3: spec: `hard` is missing");
  CHECK(load_error("apiVersion: v1\nkind: ResourceQuota\n") == "m.yaml:1:1: `metadata` is missing");
  CHECK(load_error("apiVersion: v1\nkind: Namespace\nmetadata: {labels: {a: b}}\n") ==
        "m.yaml:3:11: metadata: `name` is missing");
  CHECK(load_error("apiVersion: v1\nkind: Namespace\nmetadata: {name: a, labels: [b]}\n") ==
        "m.yaml:3:29: metadata.labels: needs keys, not a list");
  CHECK(load_error("kind: Namespace\nmetadata: {name: a}\n") ==
        "m.yaml:1:1: `apiVersion` is missing: gantry/v1 for documents of Gantry");
  CHECK(load_error("apiVersion: v1\nkind: ClusterQueue\nmetadata: {name: a}\n") ==
        "m.yaml:1:1: ClusterQueue is of apiVersion kueue.x-k8s.io/..., not of v1");
  CHECK(load_error("apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: a}\n"
                   "value: high\n") == "m.yaml:4:8: value: \"high\" is not a whole number");
  CHECK(load_error("apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: a}\n"
                   "value: 4\npreemptionPolicy: never\n") ==
        "m.yaml:5:19: preemptionPolicy: \"never\" is none of Never, PreemptLowerPriority; did you "
        "mean `Never`?");
  const std::string group =
      "  resourceGroups:\n  - coveredResources: [cpu]\n    flavors:\n    - name: f\n"
      "      resources:\n";
  CHECK(load_error(cluster_queue(group + "      - {name: cpu, nominlQuota: 4}\n")) ==
        "m.yaml:10:21: spec.resourceGroups[0].flavors[0].resources[0]: unknown field "
        "`nominlQuota`; did you mean `nominalQuota`?");
  CHECK(load_error(cluster_queue(group + "      - {name: cpu}\n")) ==
        "m.yaml:10:9: spec.resourceGroups[0].flavors[0].resources[0]: `nominalQuota` is missing");
  CHECK(load_error(cluster_queue(group + "      - {name: memory, nominalQuota: 4}\n")) ==
        "m.yaml:10:9: spec.resourceGroups[0].flavors[0].resources[0]: `memory` is none of "
        "coveredResources");
  CHECK(load_error(
            cluster_queue(group + "      - {name: cpu, nominalQuota: 4, lendingLimit: 5}\n")) ==
        "m.yaml:10:52: spec.resourceGroups[0].flavors[0].resources[0].lendingLimit: is more than "
        "nominalQuota, and only what is owned can be lent");
  // The flavor may be applied later, so its absence is no mistake.
  CHECK(load_error(cluster_queue(group + "      - {name: cpu, nominalQuota: 4}\n")) == "accepted");
  // Fields that are not honoured are checked as strictly as all others.
  CHECK(load_error(cluster_queue("  flavorFungibility: {whenCanBorow: Borrow}\n")) ==
        "m.yaml:5:23: spec.flavorFungibility: unknown field `whenCanBorow`; did you mean "
        "`whenCanBorrow`?");
  CHECK(load_error(cluster_queue("  preemption: {borrowWithinCohort: {policy: Sometimes}}\n"))
            .starts_with("m.yaml:5:45: spec.preemption.borrowWithinCohort.policy: \"Sometimes\" is "
                         "none of Never, LowerPriority"));
  CHECK(load_error(
            cluster_queue(group + "      - {name: cpu, nominalQuota: 4, borrowingLimit: 1}\n")) ==
        "m.yaml:10:54: spec.resourceGroups[0].flavors[0].resources[0].borrowingLimit: needs "
        "`cohort`: without it there is nobody to share with");
  CHECK(load_error("apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata: {name: f}\n"
                   "spec: {nodeTaints: [{key: a, efect: NoSchedule}]}\n") ==
        "m.yaml:4:30: spec.nodeTaints[0]: unknown field `efect`; did you mean `effect`?");
  CHECK(load_error("apiVersion: kueue.x-k8s.io/v1beta1\nkind: LocalQueue\nmetadata: {name: q}\n"
                   "spec: {clusterQueue: a, stopPolicy: Stop}\n")
            .starts_with("m.yaml:4:37: spec.stopPolicy: \"Stop\" is none of None, Hold"));
  CHECK(load_error("apiVersion: v1\nkind: Namespace\nmetadata:\n\tname: a\n")
            .starts_with("m.yaml:4:"));
  CHECK(load_error("apiVersion: v1\nkind: Namespace\nmetadata: {name: {{ .Values.name }}}\n")
            .starts_with("m.yaml:3:"));
}

TEST_CASE("a conflict between documents is reported at the document that causes it") {
  CHECK(load_error("apiVersion: gantry/v1\nkind: Tenant\nname: a\ncohort: ml\n") ==
        "m.yaml:4:9: Tenant a: cohort: there is no Cohort `ml`");
  CHECK(load_error("apiVersion: gantry/v1\nkind: Tenant\nname: a\nquota:\n  cpu: 4\n  gpu: "
                   "{nominal: 4, lend: 8}\n") ==
        "m.yaml:6:8: Tenant a: quota.gpu: `lend` is more than nominal, and only what is owned can "
        "be lent");
  CHECK(load_error("apiVersion: gantry/v1\nkind: Tenant\nname: a\n---\napiVersion: v1\nkind: "
                   "Namespace\nmetadata: {name: a}\n") ==
        "m.yaml:5:1: Tenant a is there twice; the first is at m.yaml:1:1");
  CHECK(load_error("apiVersion: gantry/v1\nkind: Tenant\nname: a\nquota: {gpu: 10%}\n") ==
        "m.yaml:4:14: quota.gpu: a part of the cluster needs its controller to say how large the "
        "cluster is");
  CHECK(load_error("apiVersion: gantry/v2\nkind: Tenant\nname: a\n") ==
        "m.yaml:1:13: apiVersion: \"gantry/v2\" is not known; use gantry/v1");
  // If a document is removed that a remaining one needs, the remaining one is named.
  const auto known = read_all(
      "apiVersion: gantry/v1\nkind: Cohort\nname: c\n---\napiVersion: gantry/v1\nkind: Tenant\n"
      "name: a\ncohort: c\n");
  const std::vector<proto::DocumentRef> removals{{"Cohort", "c"}};
  LoadOptions options;
  options.known = known;
  options.removals = removals;
  CHECK(load_error("# nothing\n", options) == "Tenant a: cohort: there is no Cohort `c`");
}

TEST_CASE("a user who does not see every document may still change their own") {
  const auto known = read_all(  // This user may not see the tenant that owns the pool.
      "apiVersion: gantry/v1\nkind: NodePool\nname: p\nnodes: n1\ntenant: other\n");
  LoadOptions options;
  options.known = known;
  CHECK(load_error("apiVersion: gantry/v1\nkind: Tenant\nname: a\n", options) == "accepted");
  CHECK(load_error("apiVersion: gantry/v1\nkind: Tenant\nname: a\ntier: x\n", options) ==
        "m.yaml:4:7: Tenant a: tier: there is no Tier `x`");
}

TEST_CASE("folders are read in full, hidden folders and other files are passed over") {
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::temp_directory_path() / ("gantry-tenants-" + std::to_string(::getpid()));
  fs::create_directories(folder / "teams" / ".git");
  const auto write = [&](const fs::path& path, const std::string& text) {
    std::ofstream(folder / path) << text;
  };
  write("00-tier.yml", kProduction);
  write("README.md", "not: [yaml");
  write("teams/.git/config.yaml", "not: [yaml");
  write("teams/a.yaml", "apiVersion: gantry/v1\nkind: Tenant\nname: a\ntier: production\n");
  write("teams/b.json", R"({"apiVersion": "gantry/v1", "kind": "Tenant", "name": "b"})");
  const std::vector<std::string> paths{folder.string()};
  const auto loaded = load_documents(paths, {});
  REQUIRE_MESSAGE(loaded, loaded.error().message);
  CHECK(loaded->documents.size() == 3);
  write("teams/c.yaml", "apiVersion: gantry/v1\nkind: Tenant\nname: a b\n");
  const auto refused = load_documents(paths, {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.starts_with((folder / "teams/c.yaml:3:7: name: ").string()));
  const std::vector<std::string> missing{(folder / "none").string()};
  CHECK(load_documents(missing, {}).error().code == ErrorCode::not_found);
  fs::remove_all(folder);
}

namespace {

// The documents that exist after some objects were applied one after the other.
struct ObjectApplies {
  std::vector<Document> documents;

  std::string apply(const std::string& text) {
    LoadOptions options;
    options.known = documents;
    const auto loaded = load_text(text, "m.yaml", options);
    if (!loaded) return loaded.error().message;
    documents = with_changes(documents, loaded->documents, loaded->removals);
    return "";
  }
  [[nodiscard]] std::string tenants() const {
    std::vector<Document> made = documents;
    std::erase_if(made, [](const Document& d) { return std::holds_alternative<Manifest>(d); });
    return to_text(made);
  }
};

std::string binding(const std::string& name, const std::string& role,
                    const std::vector<std::string>& users) {
  std::string text =
      "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: " + name +
      ", namespace: fraud}\nroleRef: {apiGroup: rbac.authorization.k8s.io, "
      "kind: ClusterRole, name: " +
      role + "}\nsubjects:\n";
  for (const std::string& user : users)
    text += "- {apiGroup: rbac.authorization.k8s.io, kind: User, name: " + user + "}\n";
  return text;
}

const std::string kNamespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: fraud}\n";

const std::string kUrgent =
    "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: urgent}\nvalue: 900\n";

std::string roles_of(const ObjectApplies& applied, Role role) {
  std::string out;
  for (const Document& d : applied.documents)
    if (const auto* t = std::get_if<Tenant>(&d); t != nullptr && t->name == "fraud")
      for (const Grant& g : t->grants)
        if (g.role == role) out += (out.empty() ? "" : ",") + g.user + g.group;
  return out;
}

}  // namespace

TEST_CASE("an apply changes only what its own objects gave") {
  ObjectApplies a;
  CHECK(a.apply(kNamespace) == "");
  CHECK(a.apply(binding("one", "admin", {"alice"})) == "");
  CHECK(a.apply(binding("two", "admin", {"bob"})) == "");
  CHECK(roles_of(a, Role::tenant_admin) == "alice,bob");
  // A role is given by hand here, so no object owns it.
  for (Document& d : a.documents)
    if (auto* t = std::get_if<Tenant>(&d)) t->grants.push_back({Role::user, "dave", ""});
  CHECK(a.apply(binding("two", "admin", {"carol"})) == "");
  CHECK(roles_of(a, Role::tenant_admin) == "alice,carol");
  CHECK(roles_of(a, Role::user) == "dave");
  CHECK(a.apply(binding("one", "edit", {"alice"})) == "");
  CHECK(roles_of(a, Role::tenant_admin) == "carol");
  CHECK(roles_of(a, Role::user) == "alice,dave");
  // Applying the namespace again changes none of this.
  const std::string before = a.tenants();
  CHECK(a.apply(kNamespace) == "");
  CHECK(a.tenants() == before);
}

TEST_CASE("a class is allowed to a namespace, whichever of the two was applied first") {
  ObjectApplies first, after, together;
  CHECK(first.apply(kUrgent) == "");
  CHECK(first.apply(kNamespace) == "");
  CHECK(after.apply(kNamespace) == "");
  CHECK(after.apply(kUrgent) == "");
  CHECK(together.apply(kNamespace + "---\n" + kUrgent) == "");
  CHECK(first.tenants().find("allowed_classes: [urgent]") != std::string::npos);
  CHECK(after.tenants() == first.tenants());
  CHECK(together.tenants() == first.tenants());
}

TEST_CASE("objects applied one by one in any order give the same tenants") {
  std::string text;
  for (const std::string name : {"teams", "kueue"})
    text += source_text("tests/tenancy/manifests/" + name + ".yaml") + "\n---\n";
  const auto trees = config::parse_yaml_documents(text, "all.yaml");
  REQUIRE(trees);
  std::vector<std::string> objects;
  for (const config::Yaml& tree : *trees)
    if (!manifest_name(tree).empty()) objects.push_back(flow_text(tree));
  REQUIRE(objects.size() > 15);
  std::string all;
  for (const std::string& object : objects) all += object + "\n---\n";
  ObjectApplies whole;
  REQUIRE(whole.apply(all) == "");
  std::uint64_t state = 7;
  for (int round = 0; round < 12; ++round) {
    for (std::size_t i = objects.size(); i > 1; --i) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      std::swap(objects[i - 1], objects[(state >> 33) % i]);
    }
    ObjectApplies one_by_one;
    for (const std::string& object : objects) {
      CAPTURE(object);
      CHECK(one_by_one.apply(object) == "");
    }
    CAPTURE(round);
    CHECK(one_by_one.tenants() == whole.tenants());
    CHECK(one_by_one.documents == whole.documents);
  }
}

TEST_CASE("the notes name labels that have no effect") {
  const auto loaded = load_text(
      "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n  labels:\n"
      "    istio-injection: enabled\n    team: x\n",
      "m.yaml", {});
  REQUIRE(loaded);
  REQUIRE(loaded->notes.size() == 1);
  CHECK(loaded->notes[0].find("istio-injection: a label without effect") != std::string::npos);
}

TEST_CASE("labels of Pod Security are the tenant's security profile, or are refused by name") {
  const auto load = [](const std::string& labels) {
    return load_text("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n  labels:\n" + labels,
                     "m.yaml", {});
  };
  const auto loaded = load(
      "    pod-security.kubernetes.io/enforce: baseline\n"
      "    pod-security.kubernetes.io/warn: restricted\n"
      "    pod-security.kubernetes.io/warn-version: v1.30\n");
  REQUIRE(loaded);
  const auto at = std::find_if(loaded->documents.begin(), loaded->documents.end(),
                               [](const auto& d) { return std::holds_alternative<Tenant>(d); });
  REQUIRE(at != loaded->documents.end());
  const auto& tenant = std::get<Tenant>(*at);
  CHECK(tenant.security.enforce == SecurityProfile::baseline);
  CHECK(tenant.security.warn == SecurityProfile::restricted);
  CHECK_FALSE(tenant.security.audit);
  REQUIRE(loaded->notes.size() == 1);
  CHECK(loaded->notes[0].find("warn-version: a label without effect") != std::string::npos);
  const auto strict = load("    pod-security.kubernetes.io/enforce: strict\n");
  REQUIRE_FALSE(strict);
  CHECK(strict.error().message.find(
            "metadata.labels.pod-security.kubernetes.io/enforce is \"strict\"; it is privileged, "
            "baseline or restricted") != std::string::npos);
  CHECK_FALSE(load("    pod-security.kubernetes.io/enforced: baseline\n"));
}

TEST_CASE("the notes name a maximum of 0, which is not honoured") {
  const auto loaded = load_text(
      "apiVersion: v1\nkind: LimitRange\nmetadata: {name: l, namespace: a}\nspec:\n  limits:\n"
      "  - {type: Container, max: {nvidia.com/gpu: \"0\", cpu: \"4\"}}\n",
      "m.yaml", {});
  REQUIRE(loaded);
  REQUIRE(loaded->notes.size() == 1);
  CHECK(loaded->notes[0].find("m.yaml:6:") == 0);
  CHECK(loaded->notes[0].find("nvidia.com/gpu: a maximum of 0 is not honoured") !=
        std::string::npos);
}
