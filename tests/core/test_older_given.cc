// Tests the fields of a submit that are not part of the job's shape: mail, wckey, distribution,
// directories, network, and which options were given. They pass from the client over the wire, the
// store and the replies to the node. Older releases put all of them as words into one list `given`;
// such words are read into the same fields.
#include <doctest/doctest.h>

#include "common/codec/codec.h"
#include "common/proto/job_change.h"
#include "common/proto/job_query.h"
#include "common/proto/job_submit.h"
#include "common/proto/node_order.h"
#include "common/proto/session.h"
#include "controller.h"
#include "ctld/core/core.h"
#include "ctld/core/request.h"
#include "ctld/core/state/stored_spec.h"
#include "ctld/core/turn_out.h"
#include "ctld/store/store.h"

namespace gantry::core::test::older_given_test {

// The stored record of this command line, as the previous release wrote it with its list of words:
//   sbatch -n1 --gres=gpu:1 --tres-per-task=... --mem=1G --network=none
//   --mail-type=BEGIN,END,ARRAY_TASKS --mail-user=ann@example.org,ops --wckey=vision
//   -m cyclic:fcyclic -D /scratch/ann train.sh
constexpr std::string_view kOlderStoredSpec =
    "8301de000502a5747261696e03a5626174636814ac2f736372617463682f616e6e1cd921736261746368202d"
    "6d206379636c69633a666379636c696320747261696e2e73681e9ba66e7461736b73a467726573ad67707573"
    "2d7065722d7461736ba36d656da76e6574776f726bbf6d61696c2d747970653d424547494e2c454e442c4152"
    "5241595f5441534b53bd6d61696c2d757365723d616e6e406578616d706c652e6f72672c6f7073ac77636b65"
    "793d766973696f6ebb646973747269627574696f6e3d6379636c69633a666379636c6963b97375626d69742d"
    "6469723d2f686f6d652f616e6e2f6a6f6273bf636f6d6d616e643d2f686f6d652f616e6e2f6a6f62732f7472"
    "61696e2e7368028301cd03e802cd03e803a3616e6e05a27231";
// A submit with --network=none --mail-type=END --wckey=vision.
constexpr std::string_view kOlderSubmit =
    "8301a2723202de000502a5747261696e03a5626174636814ac2f736372617463682f616e6e1cd92173626174"
    "6368202d6d206379636c69633a666379636c696320747261696e2e73681e93a76e6574776f726bad6d61696c"
    "2d747970653d454e44ac77636b65793d766973696f6e03aa23212f62696e2f73680a";
// A start order with -n1 -m cyclic -D ...; its component has --ntasks-per-node=1 -c1.
constexpr std::string_view kOlderLaunch =
    "de0003028101070dde000202a5747261696e1e93a66e7461736b73b3646973747269627574696f6e3d637963"
    "6c6963b97375626d69742d6469723d2f686f6d652f616e6e2f6a6f627315918201080492af6e7461736b732d"
    "7065722d6e6f6465ad637075732d7065722d7461736b";

Bytes of_hex(std::string_view hex) {
  Bytes out;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    out += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return out;
}

Config config() {
  Config c;
  c.cluster = "test";
  for (const char* name : {"batch", "open"}) {
    PartitionConfig p;
    p.name = name;
    p.is_default = p.name == "batch";
    p.nodes = {"n1"};
    p.allow_host_network = p.host_network_by_default = p.name == "open";
    c.partitions.push_back(p);
  }
  NodeConfig n;
  n.name = "n1";
  n.cpus = 4;
  n.memory = 8ll << 30;
  c.nodes.push_back(n);
  c.controller.mail_program = "/usr/sbin/sendmail";
  return c;
}

proto::SubmitJob submit() {
  proto::SubmitJob m;
  m.spec.work_dir = "/scratch/ann";
  m.script = "#!/bin/sh\n";
  return m;
}

JobSpec full_spec() {
  JobSpec s = submit().spec;
  s.name = "train";
  s.partition = "batch";
  s.mail.events = MailEvents{};
  s.mail.events->begin = s.mail.events->end = s.mail.events->array_tasks = true;
  s.mail.to = {"ann@example.org", "ops"};
  s.wckey = "vision";
  s.distribution = Distribution{NodeOrder::cyclic, CoreOrder::fcyclic};
  s.submit_dir = "/home/ann/jobs";
  s.script_path = "/home/ann/jobs/train.sh";
  s.network = NetworkMode::loopback;
  s.given.tasks = s.given.gres = s.given.gpus_per_task = true;
  return s;
}

void check_same(const JobSpec& a, const JobSpec& b) {
  CHECK(a.mail == b.mail);
  CHECK(a.wckey == b.wckey);
  CHECK(a.distribution == b.distribution);
  CHECK(a.submit_dir == b.submit_dir);
  CHECK(a.script_path == b.script_path);
  CHECK(a.network == b.network);
  CHECK(a.given == b.given);
  CHECK(a.older_given == b.older_given);
}

JobSpec shown(Controller& controller, JobId job) {
  const ReplyMessage reply =
      controller.ask(identity("ann", 1000), proto::ShowJob{{job, {}}, false});
  const auto wire = codec::encode(reply.get<proto::ShowJobReply>());
  const auto read = codec::decode<proto::ShowJobReply>(wire);
  REQUIRE(read);
  REQUIRE(read->jobs.size() == 1);
  return read->jobs.front().spec;
}

TEST_CASE("all fields of a submit come back from the wire, the store and a restart") {
  Controller controller(config());
  proto::SubmitJob m = submit();
  m.spec = full_spec();
  m.spec.no_kill = true;  // older records have no such field
  const auto read = codec::decode<proto::SubmitJob>(codec::encode(m));
  REQUIRE(read);
  check_same(read->spec, full_spec());
  const ReplyMessage reply = controller.ask(identity("ann", 1000), *read);
  REQUIRE(reply.is<proto::SubmitReply>());
  check_same(shown(controller, JobId{1}), full_spec());
  controller.restart(config());
  check_same(shown(controller, JobId{1}), full_spec());
  CHECK(shown(controller, JobId{1}).no_kill);
}

TEST_CASE("a stored record of the previous release is read into the fields") {
  const Bytes bytes = of_hex(kOlderStoredSpec);
  const auto stored = codec::decode<StoredSpec>(bytes);
  REQUIRE(stored);
  check_same(stored->spec, full_spec());
  // history and mail read only this part of a record
  const auto tail = codec::decode<SpecTail>(bytes);
  REQUIRE(tail);
  CHECK(tail->spec.mail == full_spec().mail);
  CHECK(tail->spec.wckey == "vision");
}

TEST_CASE(
    "a controller that starts on a record of the previous release shows it and sends its mail") {
  store::MemoryStore store(store::MemoryStore::Options{.keep_everything = true});
  {
    Core core(config());
    REQUIRE(core.start(Instant{hours(500'000).us}));
    REQUIRE(store.append(core.take_turn().append));
    core.step(Instant{hours(500'000).us},
              ClientRequest{ConnectionId(1), 1, identity("ann", 1000), submit()});
    REQUIRE(store.append(core.take_turn().append));
  }
  Core core(config());
  REQUIRE(core.load_spec(JobId{1}, of_hex(kOlderStoredSpec)));
  for (const store::JournalEntry& event : store.every_event()) REQUIRE(core.replay(event));
  REQUIRE(core.start(Instant{hours(500'001).us}));
  (void)core.take_turn();
  const auto ask = [&](ClientMessage message) {
    core.step(Instant{hours(500'001).us},
              ClientRequest{ConnectionId(1), 2, identity("ann", 1000), std::move(message)});
    return core.take_turn();
  };
  const Turn listed = ask(proto::ShowJob{{JobId{1}, {}}, false});
  REQUIRE(listed.replies.size() == 1);
  check_same(listed.replies[0].message.get<proto::ShowJobReply>().jobs.at(0).spec, full_spec());
  proto::CancelJobs cancel;
  cancel.filter.jobs.push_back({JobId{1}, {}});
  const Turn cancelled = ask(std::move(cancel));
  REQUIRE(cancelled.letters.size() == 1);
  CHECK(cancelled.letters[0].to == std::vector<std::string>{"ann@example.org", "ops"});
}

TEST_CASE("a submit by a client of the previous release is understood") {
  const auto m = codec::decode<proto::SubmitJob>(of_hex(kOlderSubmit));
  REQUIRE(m);
  REQUIRE(m->spec.mail.events);
  CHECK(format_mail_events(*m->spec.mail.events) == "END");
  CHECK(m->spec.wckey == "vision");
  // the older client wrote the network as a word, not as a field
  CHECK(m->spec.network == NetworkMode::loopback);
  CHECK(m->spec.older_given.empty());
}

TEST_CASE("a start order by a controller of the previous release is understood") {
  const auto launch = codec::decode<proto::Launch>(of_hex(kOlderLaunch));
  REQUIRE(launch);
  CHECK(launch->spec.given.tasks);
  CHECK(launch->spec.distribution == Distribution{NodeOrder::cyclic, CoreOrder::block});
  CHECK(launch->spec.submit_dir == "/home/ann/jobs");
  REQUIRE(launch->het.size() == 1);
  CHECK(launch->het[0].given.cpus_per_task);
  CHECK(launch->het[0].given.tasks_per_node);
  CHECK_FALSE(launch->het[0].given.tasks);
}

TEST_CASE(
    "a node of the previous release finds its words, and they are read back into the fields") {
  const JobSpec full = full_spec();
  const auto words = given_for_older_node(full.given, full.distribution, full.submit_dir);
  CHECK(words == std::vector<std::string>{"ntasks", "gres", "gpus-per-task",
                                          "distribution=cyclic:fcyclic",
                                          "submit-dir=/home/ann/jobs"});
  JobSpec both = full;
  both.older_given = words;
  const auto read = codec::decode<JobSpec>(codec::encode(both));
  REQUIRE(read);
  check_same(*read, full);
}

TEST_CASE("the partition decides on the network of a job that does not choose one") {
  Controller controller(config());
  const auto network = [&](std::string partition, std::optional<NetworkMode> said) {
    proto::SubmitJob m = submit();
    m.spec.partition = std::move(partition);
    m.spec.network = said;
    const ReplyMessage reply = controller.ask(identity("ann", 1000), std::move(m));
    const auto* done = reply.get_if<proto::SubmitReply>();
    REQUIRE(done != nullptr);
    return shown(controller, done->job).network;
  };
  CHECK(network("batch", std::nullopt) == NetworkMode::job);
  CHECK(network("batch", NetworkMode::loopback) == NetworkMode::loopback);
  CHECK(network("open", std::nullopt) == NetworkMode::host);
  CHECK(network("open", NetworkMode::loopback) == NetworkMode::loopback);
}

TEST_CASE("a value that our clients never send is refused with one sentence") {
  Controller controller(config());
  const auto refusal = [&](auto change) {
    proto::SubmitJob m = submit();
    change(m.spec);
    const ReplyMessage reply = controller.ask(identity("ann", 1000), std::move(m));
    const auto* error = reply.get_if<proto::ErrorReply>();
    return error == nullptr ? std::string() : error->message;
  };
  CHECK(refusal([](JobSpec& s) { s.wckey = std::string(257, 'k'); }) ==
        "the wckey has 257 bytes; at most 256 are allowed");
  CHECK(refusal([](JobSpec& s) { s.submit_dir = "jobs"; }) ==
        "the directory of the submit must be an absolute path, not \"jobs\"");
  CHECK(refusal([](JobSpec& s) { s.script_path = "train.sh"; }) ==
        "the path of the script must be an absolute path, not \"train.sh\"");
  CHECK(refusal([](JobSpec& s) {
          s.mail.to = {"ann", "-oQ/tmp"};
        }) == "\"-oQ/tmp\" is no address of mail");
  CHECK(refusal([](JobSpec& s) { s.mail.to.resize(17, "ann"); }) ==
        "17 addresses; 1 to 16 are allowed");
  CHECK(refusal([](JobSpec& s) {
          s.older_given = {"distribution=plane", "mem", "foo"};
          s.from_older_form();
        }) == "\"plane\": a plane has a number of tasks: plane=4");
  // a path may be in Latin-1
  CHECK(refusal([](JobSpec& s) { s.submit_dir = "/home/M\xfcller"; }).empty());
}

}  // namespace gantry::core::test::older_given_test
