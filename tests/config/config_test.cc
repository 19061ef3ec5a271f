// Tests how gantry.yaml is read, and with which sentences mistakes in it are refused.
#include <doctest/doctest.h>

#include "config/config.h"
#include "config/nearest.h"
#include "config/reference.h"
#include "tests/golden/golden.h"
#include "tests/places.h"

using namespace gantry;

namespace {

std::string error_of(const std::string& text) {
  const auto config = parse_config(text, "g.yaml");
  return config ? "accepted" : config.error().message;
}

const std::string kNodes = "nodes:\n  - {name: n1, cpus: 2, memory: 2G}\n";

}  // namespace

TEST_CASE("the example configurations load") {
  const auto minimal = load_config(source_dir() + "/config/examples/minimal.yaml");
  REQUIRE_MESSAGE(minimal, minimal.error().message);
  CHECK(minimal->cluster == "lab");
  CHECK(minimal->partitions.size() == 1);
  CHECK(minimal->partitions[0].name == "batch");
  CHECK(minimal->partitions[0].is_default);
  CHECK(minimal->nodes[0].memory == std::int64_t{30} << 30);

  const auto big = load_config(source_dir() + "/config/examples/cluster15.yaml");
  REQUIRE_MESSAGE(big, big.error().message);
  REQUIRE(big->nodes.size() == 15);
  CHECK(big->nodes[0].name == "n01");
  CHECK(big->nodes[11].name == "n12");
  CHECK(big->nodes[14].cpu_ids->size() == 16);
  CHECK(big->nodes[14].cpu_ids->at(8) == 16);
  CHECK(big->controller.lost_node_policy == LostNodePolicy::fence);
  CHECK(big->controller.fence_after == minutes(10));
  CHECK(big->partitions.size() == 4);
  CHECK(big->partitions[0].nodes.size() == 14);
  CHECK(big->partitions[1].max_time == hours(72));
  CHECK(big->partitions[3].default_memory_per_cpu == std::int64_t{2} << 30);
}

TEST_CASE("every value in force is listed in a form that can be read back") {
  const auto config = load_config(source_dir() + "/config/examples/cluster15.yaml");
  REQUIRE(config);
  const auto values = describe(*config);
  CHECK(values.at("cluster") == "research");
  CHECK(values.at("controller.kill_wait") == "30s");
  CHECK(values.at("controller.fence_after") == "10m");
  CHECK(values.at("controller.lost_node_policy") == "fence");
  CHECK(values.at("noded.runtimes") == "[crun, runc]");
  CHECK(values.at("nodes.n03.memory") == "250G");
  CHECK(values.at("nodes.dev1.cpu_ids") == "0-7,16-23");
  CHECK(values.at("partitions.batch.nodes") == "n[01-12],big[1-2]");
  CHECK(values.at("partitions.batch.max_time") == "7d");
  CHECK(values.at("partitions.multinode.allow_host_network") == "true");
}

namespace {

// If `error` is empty, any error whose place is the list of nodes is accepted.
struct Case {
  std::string text;
  std::string error;
};
const Case kMistakes[] = {
    {"", "g.yaml: the file must have keys such as `nodes:`, not nothing"},
    {"just words", "g.yaml:1:1: the file must have keys such as `nodes:`, not a single value"},
    {"- 1\n- 2\n", "g.yaml:1:1: the file must have keys such as `nodes:`, not a list"},
    {"cluster: x\n", "g.yaml: no node is declared; add `nodes:` with a `- name:` for each"},
    {"nodes: {\n", "g.yaml:2:1: not valid YAML: end of map flow not found"},
    {"cluster: [a\n", "g.yaml:2:1: not valid YAML: end of sequence flow not found"},
    {"--- {a: 1}\n--- {b: 2}\n", "g.yaml:2:5: a configuration is one YAML document, not several"},
    {"clutser: x\n" + kNodes, "g.yaml:1:1: unknown key `clutser`; did you mean `cluster`?"},
    {"cluster: x\ncluster: y\n" + kNodes,
     "g.yaml:2:1: `cluster` is given twice; the first is in line 1"},
    {"[a]: b\n", "g.yaml:1:1: a key must be a plain word"},
    {"cluster: \"a b\"\n" + kNodes,
     "g.yaml:1:10: cluster: \"a b\" is not a name; use up to 64 letters, digits, '-', '_' and "
     "'.', not beginning with '-' or '.'"},
    {kNodes + "partitions:\n  - {name: p, nodes: [n1], deny_accounts: [red, blue/lab, a/b/c]}\n",
     "g.yaml:4:59: partitions[0].deny_accounts: \"a/b/c\" is not a tenant, a project or "
     "TENANT/PROJECT"},
    {"nodes: n1\n",
     "g.yaml:1:8: nodes: needs a list, one `- name: ...` per node or range, not a single value"},
    {"nodes:\n  - n1\n", "g.yaml:2:5: nodes[0]: needs keys, not a single value"},
    {"nodes:\n  - {cpus: 2, memory: 1G}\n",
     "g.yaml:2:5: nodes[0]: `name` is missing (node name or range)"},
    {"nodes:\n  - name: n1\n    cpus: 2\n    memory: \"12X\"\n",
     "g.yaml:4:13: nodes[0].memory: \"12X\" is not an amount of memory; use a number with K, M, "
     "G or T"},
    {"nodes:\n  - name: n1\n    cpus: 2\n    memory: 12\n",
     "g.yaml:4:13: nodes[0].memory: \"12\" is not an amount of memory; use a number with K, M, G "
     "or T"},
    {"nodes:\n  - name: n1\n    cpus: 2\n    memory: 4K\n",
     "g.yaml:4:13: nodes[0].memory: 4K is outside of 1M to 1024T"},
    {"nodes:\n  - name: n1\n    cpus: two\n    memory: 1G\n",
     "g.yaml:3:11: nodes[0].cpus: \"two\" is not a whole number"},
    {"nodes:\n  - name: n1\n    cpus: 0\n    memory: 1G\n",
     "g.yaml:3:11: nodes[0].cpus: 0 is outside of 1 to 4096"},
    {"nodes:\n  - name: n1\n    cpus: 99999999999999999999\n    memory: 1G\n",
     "g.yaml:3:11: nodes[0].cpus: \"99999999999999999999\" is not a whole number"},
    {"nodes:\n  - {name: n1, cpus: 4, cpu_ids: 0-2, memory: 1G}\n",
     "g.yaml:2:34: nodes[0].cpu_ids: names 3 CPUs, but cpus is 4"},
    {"nodes:\n  - {name: n1, cpus: 4, cpu_ids: 0-x, memory: 1G}\n",
     "g.yaml:2:34: nodes[0].cpu_ids: \"0-x\" is not a list of CPUs; use numbers and ranges as "
     "0-3,8"},
    {"nodes:\n  - {name: 'n[1-2]', cpus: 4, memory: 1G, address: 'h:1'}\n",
     "g.yaml:2:52: nodes[0].address: one address cannot belong to several nodes"},
    {"nodes:\n  - {name: n1, cpus: 4, memory: 1G, address: nowhere}\n",
     "g.yaml:2:46: nodes[0].address: \"nowhere\" is not HOST:PORT"},
    {"nodes:\n  - {name: 'n[1-2]', cpus: 4, memory: 1G}\n  - {name: n2, cpus: 1, memory: 1G}\n",
     "g.yaml:3:12: nodes[1].name: node `n2` is already declared by nodes[0]"},
    {"nodes:\n  - {name: n1, cpus: 4, memory: 1G, colour: red}\n",
     "g.yaml:2:37: nodes[0]: unknown key `colour`"},
    {"nodes:\n  - {name: n1, cpus: 4, memory: 1G, featurs: [a]}\n",
     "g.yaml:2:37: nodes[0]: unknown key `featurs`; did you mean `features`?"},
    {"nodes:\n  - {name: n1, cpus: 4, memory: 1G, features: [a, [b]]}\n",
     "g.yaml:2:51: nodes[0].features: needs single values, not a list"},
    {"nodes:\n  - {name: n1, cpus: 4, memory: 1G, gpus: 1, gpu_sharing: yes}\n",
     "g.yaml:2:59: nodes[0].gpu_sharing: \"yes\" is not none, mps or time-slicing"},
    {"nodes:\n  - {name: n1, cpus: 4, memory: 1G, gpu_shards: 4}\n",
     "g.yaml:2:49: nodes[0].gpu_shards: needs gpu_sharing: mps, or time-slicing"},
    {"nodes:\n  - {name: n1, cpus: 4, memory: 1G, gres: [fpga]}\n",
     "g.yaml:2:43: nodes[0].gres: \"fpga\": a resource is NAME:COUNT with 1 to 1024, or NAME:FILES "
     "as fpga:/dev/xfpga[0-3]"},
    {"nodes:\n  - {name: n1, cpus: 4, memory: 1G, gres: ['gpu:2']}\n",
     "g.yaml:2:43: nodes[0].gres: \"gpu\" is not the name of a resource: lower-case letters, "
     "digits, - and _, a letter first, and not gpu, mig, shard, mps or none"},
    {"nodes:\n  - {name: n1, cpus: 4, memory: 1G, gres: ['x:1', 'x:2']}\n",
     "g.yaml:2:43: nodes[0].gres: x is given twice"},
    {"nodes:\n  - {name: n1, cpus: 4, memory: 1G, gres: ['x:/tmp/file']}\n",
     "g.yaml:2:43: nodes[0].gres: \"/tmp/file\" is no path in /dev"},
    {"controller: {port: 70000}\n" + kNodes,
     "g.yaml:1:20: controller.port: 70000 is outside of 1 to 65535"},
    {"controller: {kill_wait: 30}\n" + kNodes,
     "g.yaml:1:25: controller.kill_wait: \"30\" is not a length of time; use a number with ms, s, "
     "m, h or d, or HH:MM:SS or D-HH:MM:SS"},
    {"controller: {kill_wait: [30s]}\n" + kNodes,
     "g.yaml:1:25: controller.kill_wait: needs a value (duration, 0s to 1h), not a list"},
    {"controller: {kill_wait: 9999999999999d}\n" + kNodes,
     "g.yaml:1:25: controller.kill_wait: \"9999999999999d\" is not a length of time; use a number "
     "with ms, s, m, h or d, or HH:MM:SS or D-HH:MM:SS"},
    {"controller: {state_dir: var/lib}\n" + kNodes,
     "g.yaml:1:25: controller.state_dir: \"var/lib\" is not an absolute path"},
    {"controller: {allow_munge: maybe}\n" + kNodes,
     "g.yaml:1:27: controller.allow_munge: \"maybe\" is not true or false"},
    {"controller: {lost_node_policy: pray}\n" + kNodes,
     "g.yaml:1:32: controller.lost_node_policy: \"pray\" is not wait or fence"},
    {"controller: {heartbeat: 20s}\n" + kNodes,
     "g.yaml:1:13: controller.node_timeout: is less than twice heartbeat"},
    {"controller: {job_network_transport: ipsec}\n" + kNodes,
     "g.yaml:1:37: controller.job_network_transport: \"ipsec\" is not vxlan, wireguard or routed"},
    {"controller: {job_network_prefix: \"2001:db8::/48\"}\n" + kNodes,
     "g.yaml:1:34: controller.job_network_prefix: is not a unique local IPv6 prefix of 48 bits, "
     "such as fd12:3456:789a::/48"},
    {"controller: {job_network_block: 10.1.0.0/10}\n" + kNodes,
     "g.yaml:1:33: controller.job_network_block: is not an IPv4 block of 10 bits, such as "
     "100.64.0.0/10"},
    {"noded: {cni: net.conflist}\n" + kNodes,
     "g.yaml:1:14: noded.cni: \"net.conflist\" is not an absolute path"},
    {"controller: {heartbeat: 20s, node_timeout: 30s}\n" + kNodes,
     "g.yaml:1:44: controller.node_timeout: is less than twice heartbeat"},
    {"controller: {lost_node_policy: fence, fence_after: 20s}\n" + kNodes,
     "g.yaml:1:52: controller.fence_after: is not longer than node_timeout"},
    {"controller: {store_map: 2G, store_map_max: 1G}\n" + kNodes,
     "g.yaml:1:44: controller.store_map_max: is less than store_map"},
    {"noded: {runtimes: [docker]}\n" + kNodes,
     "g.yaml:1:20: noded.runtimes: \"docker\" is not a runtime; use crun, runc, process, none or "
     "an "
     "absolute path"},
    {kNodes + "partitions:\n  - {name: a, nodes: n2}\n",
     "g.yaml:4:22: partitions[0].nodes: there is no node `n2`; did you mean `n1`?"},
    {kNodes + "partitions:\n  - {name: a, nodes: 'n[1'}\n", ""},
    {kNodes + "partitions:\n  - {name: a, nodes: 'n1,n1'}\n",
     "g.yaml:4:22: partitions[0].nodes: names `n1` twice"},
    {kNodes + "partitions:\n  - {name: a, nodes: all}\n  - {name: a, nodes: all}\n",
     "g.yaml:5:12: partitions[1].name: `a` exists already"},
    {kNodes + "partitions:\n  - {name: a, nodes: all}\n  - {name: b, nodes: all}\n",
     "g.yaml:4:3: partitions: one of them needs `default: true`"},
    {kNodes + "partitions:\n  - {name: a, nodes: all, default: yes}\n"
              "  - {name: b, nodes: all, default: yes}\n",
     "g.yaml:5:36: partitions[1].default: `a` is the default already; one partition can be"},
    {kNodes + "partitions:\n  - {name: a, nodes: all, default_time: 2h, max_time: 1h}\n",
     "g.yaml:4:41: partitions[0].default_time: is longer than max_time"},
};

}  // namespace

TEST_CASE("a mistake is refused with its file, line and column") {
  for (const Case& c : kMistakes) {
    CAPTURE(c.text);
    if (c.error.empty())
      CHECK(error_of(c.text).starts_with("g.yaml:4:22: partitions[0].nodes: "));
    else
      CHECK(error_of(c.text) == c.error);
  }
}

TEST_CASE("random and hostile files are refused, and their aliases are not followed without end") {
  std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 9; ++i) {
    bomb += fmt::format("a{}: &a{} [", i, i);
    for (int k = 0; k < 10; ++k) bomb += fmt::format("*a{},", i - 1);
    bomb += "]\n";
  }
  CHECK(error_of(bomb).find("too many values") != std::string::npos);
  CHECK(error_of(std::string(100'000, '[')).starts_with("g.yaml:1:"));
  CHECK(error_of("a: " + std::string(40, '[') + std::string(40, ']')) ==
        "g.yaml:1:35: this is nested too deeply");
  // For these texts yaml-cpp's own loader would make documents without end.
  for (const std::string text : {",", ", a: b\n", "a: b\n---\n,", "   ,annotations:\nitems:\n"})
    CHECK(error_of(text) != "accepted");
  CHECK(error_of("a: &x [*x]\n") == "g.yaml:1:8: this stands within what it names");
  CHECK(error_of("a: *x\n").find("not valid YAML") != std::string::npos);
  CHECK(error_of("? [a]\n: b\n") == "g.yaml:1:3: a key must be a plain word");
  CHECK(error_of("<<: 4\n") == "g.yaml:1:5: `<<` needs a set of keys, or a list of them");
  CHECK(error_of(std::string("a: \0b", 5)).find("zero byte") != std::string::npos);
  CHECK(error_of("a: b\nc: \xff\n") == "g.yaml:2: byte 0xff is not UTF-8 text");
  // the byte order mark of UTF-16
  CHECK(error_of("\xfe\xff").find("not UTF-8") != std::string::npos);
  CHECK(error_of(std::string(5u << 20, ' ')).find("at most") != std::string::npos);
  const std::string good = test::source_text("config/examples/cluster15.yaml");
  for (std::size_t cut = 0; cut < good.size(); cut += 7) (void)error_of(good.substr(0, cut));
  for (std::size_t at = 0; at < good.size(); at += 5) {
    std::string changed = good;
    changed[at] = static_cast<char>(changed[at] ^ 0x15);
    (void)error_of(changed);
  }
}

TEST_CASE("the error for a missing file names it") {
  const auto config = load_config("/nonexistent/gantry.yaml");
  REQUIRE_FALSE(config);
  CHECK(config.error().message ==
        "cannot read /nonexistent/gantry.yaml: No such file or directory");
  CHECK(config.error().code == ErrorCode::not_found);
}

TEST_CASE("the nearest known word is suggested for a misspelt one") {
  const std::string_view words[] = {"memory", "name", "cpus"};
  CHECK(nearest("memroy", words) == "memory");
  CHECK(nearest("nmae", words) == "name");
  CHECK(nearest("xyz", words).empty());
  CHECK(nearest("", words).empty());
}

TEST_CASE("docs/config.md is what the declarations of the options generate") {
  test::check_golden("docs/config.md", config::reference_page());
}
