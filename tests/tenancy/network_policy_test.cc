// NetworkPolicies that cannot be translated completely: each is refused with its field and the
// reason. Those that can be are in manifests/policies.yaml and its golden file.
#include "tests/tenancy/sample.h"

#include "config/tenancy/files/load.h"

using namespace gantry;
using namespace gantry::tenancy;
using namespace gantry::test;

namespace {

std::string policy_error(const std::string& spec) {
  const auto loaded = load_text(
      "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\n"
      "metadata: {name: p, namespace: a}\nspec: " +
          spec + "\n",
      "m.yaml", {});
  return loaded ? "accepted" : loaded.error().message;
}

// A policy of all jobs with one rule of egress.
std::string egress_error(const std::string& rule) {
  return policy_error("{podSelector: {}, policyTypes: [Egress], egress: [" + rule + "]}");
}

}  // namespace

TEST_CASE("a NetworkPolicy that jobs cannot have is refused with the field and the reason") {
  struct Row {
    std::string said, wanted;
  };
  const std::string block = "{to: [{ipBlock: {cidr: 10.0.0.0/8}}]";
  for (const Row& row : std::vector<Row>{
           {policy_error("{podSelector: {matchLabels: {app: web}}}"),
            "m.yaml:4:21: spec.podSelector: jobs have no labels to select by"},
           {policy_error("{podSelector: {matchExpressions: [{key: a, operator: Exists}]}}"),
            "spec.podSelector: jobs have no labels"},
           {policy_error("{policyTypes: [Ingress]}"), "`podSelector` is missing"},
           {policy_error("{podSelector: {}, policyTypes: [Ingres]}"), "is none of Ingress, Egress"},
           {policy_error("{podSelector: {}, policyTypes: [Ingress], egress: []}"),
            "spec.egress: `policyTypes` lacks Egress"},
           {policy_error("{podSelector: {}, ingress: [{}]}"), "spec.ingress[0]: is for everybody"},
           {policy_error("{podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8}}]}]}"),
            "nobody outside of the cluster can connect to a job"},
           {egress_error("{}"), "spec.egress[0]: is to everywhere"},
           {egress_error("{to: []}"), "is to everywhere"},
           {egress_error("{ports: [{port: 443}]}"), "is to everywhere"},
           {egress_error("{to: [{}]}"), "has none of ipBlock, podSelector and namespaceSelector"},
           {egress_error("{to: [{ipBlock: {cidr: 10.0.0.0/8}, podSelector: {}}]}"),
            "refuses that too"},
           {egress_error("{to: [{podSelector: {matchLabels: {a: b}}}]}"),
            "spec.egress[0].to[0].podSelector: jobs have no labels"},
           {egress_error("{to: [{namespaceSelector: {}}]}"), "selects every namespace; name each"},
           {egress_error("{to: [{namespaceSelector: {matchLabels: {team: a}}}]}"),
            "namespaces are selected by the label kubernetes.io/metadata.name alone"},
           {egress_error("{to: [{namespaceSelector: {matchExpressions: [{key: "
                         "kubernetes.io/metadata.name, operator: NotIn, values: [a]}]}}]}"),
            "namespaces are selected by the label"},
           {egress_error(block + ", ports: [{port: https}]}"), "jobs have no ports with names"},
           {egress_error(block + ", ports: [{protocol: SCTP, port: 9}]}"), "is not TCP or UDP"},
           {egress_error(block + ", ports: [{port: 90, endPort: 80}]}"),
            "has no port or range of ports"},
           {egress_error(block + ", ports: [{port: 0}]}"), "has no port or range of ports"},
           {egress_error("{to: [{ipBlock: {cidr: 10.0.0.1/8}}]}"),
            "has bits set behind its first 8"},
           {egress_error("{to: [{ipBlock: {cidr: store.example}}]}"), "is not an address"},
           {egress_error("{to: [{ipBlock: {cidr: \"10.0.0.0/8 tcp/1\"}}]}"), "is not a CIDR"},
           {egress_error("{to: [{ipBlock: {cidr: 10.0.0.0/8, except: [11.0.0.0/16]}}]}"),
            "is no part of 10.0.0.0/8"},
           {egress_error("{to: [{ipBlock: {cidr: 10.0.0.0/8, exept: []}}]}"),
            "unknown field `exept`"},
           {egress_error("{too: []}"), "unknown field `too`"}}) {
    CAPTURE(row.said);
    CHECK(row.said.find(row.wanted) != std::string::npos);
  }
}

TEST_CASE("what a policy leaves open by being silent stays closed, and a note says so") {
  const auto loaded = load_text(
      "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\n"
      "metadata: {name: p, namespace: a}\nspec: {podSelector: {}, policyTypes: [Ingress], ingress: "
      "[{from: [{podSelector: {}}]}]}\n",
      "m.yaml", {});
  REQUIRE_MESSAGE(loaded, loaded.error().message);
  REQUIRE(loaded->notes.size() == 1);
  CHECK(loaded->notes[0].find("no policy of the namespace is about egress") != std::string::npos);
  for (const Document& document : loaded->documents)
    if (const auto* profile = std::get_if<NetworkProfile>(&document)) {
      CHECK(profile->resolvers);
      CHECK(profile->to.empty());
      CHECK(profile->to_tenants == std::vector<std::string>{"a"});
      CHECK(profile->from_tenants == std::vector<std::string>{"a"});
    }
}
