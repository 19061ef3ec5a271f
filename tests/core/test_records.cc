// A record in which every field differs from its default goes through load and fold and must come
// out as the same bytes: a field that one of the two forgets would be missing then. The bytes are
// also in a golden file, because stores written by older releases hold such records.
// GANTRY_UPDATE_GOLDEN=1 rewrites that file.
#include <doctest/doctest.h>

#include <set>

#include <fmt/core.h>

#include "common/codec/codec.h"
#include "common/codec/define.h"
#include "common/proto/node_report.h"
#include "common/proto/tenant_events.h"
#include "ctld/core/apply/load.h"
#include "ctld/core/resources/index.h"
#include "ctld/sched/change.h"
#include "ctld/store/store.h"
#include "tests/golden/golden.h"

using namespace gantry;
using namespace gantry::core;

namespace {

using FieldNames = std::set<std::string>;

// Returns the fields that have their default value: a reader that forgot one of them would not be
// noticed.
template <class T>
FieldNames unset_fields(const T& value) {
  FieldNames out;
  const codec::FieldTable& table = codec::fields_of(codec::type_of<T>());
  for (const codec::Field& field : table.fields)
    if (codec::same_as_default(*field.type, codec::at(&value, field.offset),
                               table.defaults + field.offset))
      out.emplace(field.name);
  return out;
}

Active every_field_of_an_attempt() {
  Active a;
  a.placed = Instant{1'000'001};
  a.exclusive = true;
  a.warned = true;
  a.idle_told = proto::IdleGpuStep::warn;
  a.charge = 1.25;
  a.checkpoint = Instant{1'000'002};
  NodeRun& run = a.nodes.emplace_back();
  run.grant.node = NodeId(1);
  run.grant.cpus = {0, 3};
  run.grant.memory = 5 << 20;
  run.state = RunState::released;
  run.cause = proto::ExitCause::fenced;
  run.exit = {3, 9};
  run.message = "gone";
  run.held = {{0, 2000}};
  run.frozen = true;
  run.perhaps_over = true;
  run.ended = Instant{1'000'003};
  a.finish = Finish{Instant{1'000'004},
                    Outcome::preempted,
                    ExitStatus{1, 0},
                    RequeueWhy::asked,
                    Hold::launch_failed,
                    seconds(7),
                    true};
  a.usage = Usage{11, 12, 13, 14, 15, {}};
  StepState& step = a.steps.emplace_back();
  step.id = StepId(2);
  step.name = "step";
  step.nodes = {NodeId(1)};
  step.gpus_seen = 3;
  step.tres = {"gres:gpu:3", "gres:gpu:1", "gres:gpu:2",  "gres:gpu:4",
               "gres:gpu:5", "gres:gpu:6", "gpu:closest", "gpu:low"};
  a.next_step = StepId(3);
  a.waits = {{Reason::priority, seconds(30)}};
  a.bill.plan = "spot";
  a.bill.since = Instant{1'000'005};
  a.bill.settled = true;
  a.bill.lines.emplace_back().what = {"pool", "cpu", 1000};
  a.bill.most = Money{77};
  a.suspended = Instant{1'000'006};
  a.suspended_before = seconds(3);
  a.use = {{{"cpu", 4}}, 2'000'000, 1, 2};
  a.secrets = {{"hub", 2, "token"}};
  a.door = 20'001;
  return a;
}

ArrayRecord every_field_of_tasks() {
  ArrayRecord t;
  t.pending = {{6, 9}};
  t.done_ok = {{0, 1}};
  t.done_bad = {{2, 2}};
  t.corr_met = {{3, 3}};
  t.corr_never = {{4, 4}};
  t.max_running = 4;
  t.never_started = 5;
  t.last_history = Instant{2'000'001};
  t.last_split = JobId{12};
  t.worst = Outcome::timeout;
  t.worst_exit = {4, 2};
  return t;
}

JobRecord common_fields() {
  JobRecord r;
  r.phase = Phase::ended;
  r.hold = Hold::admin;
  r.started_once = true;
  r.outcome = Outcome::failed;
  r.exit = {5, 6};
  r.name = "other";
  r.partition = PartitionId(1);
  r.time_limit = seconds(60);
  r.nice = -3;
  r.site_factor = 7;
  r.queues = {PartitionId(1), PartitionId(2)};
  r.windows = {"window", "other"};
  r.notes = JobNotes{ExitStatus{1, 2}, "of an administrator", "of the system"};
  r.priority = 12;
  r.restarts = 2;
  r.launch_failures = 3;
  r.attempt = Attempt(4);
  r.submitted = Instant{3'000'001};
  r.eligible = Instant{3'000'002};
  r.not_before = Instant{3'000'003};
  r.backing_off = true;
  r.started = Instant{3'000'004};
  r.ended = Instant{3'000'005};
  r.cause = "because";
  r.comment = "new comment";
  r.preemptions = 6;
  r.share = sched::ShareId(7);
  r.class_priority = 8;
  r.account = "project";
  r.reservation = "window";
  r.billed = Money{9};
  r.credited = Money{10};
  r.priority_class = 1;
  r.lowered = true;
  r.window_named = Instant{3'000'007};
  r.asked_more = Instant{3'000'008};
  r.shape.emplace().min_nodes = 2;
  r.may_requeue = true;
  return r;
}

JobRecord of_array() {
  JobRecord r = common_fields();
  r.dependencies = {DependencyStatus::met};
  r.tasks = every_field_of_tasks();
  return r;
}

JobRecord of_element() {
  JobRecord r = common_fields();
  r.array = JobId(5);
  r.ordinal = 5;
  r.active = every_field_of_an_attempt();
  return r;
}

NodeRecord of_node() {
  NodeRecord r;
  r.id = NodeId(1);
  r.health = NodeHealth::lost;
  r.intent = NodeIntent::drain;
  r.reason = "broken";
  r.reason_by = "alice";
  r.since = Instant{4'000'001};
  r.facts.boot_id = "boot";
  r.facts.cpus = 4;
  r.drained_gpus = {{"GPU-1", "hot", "bob", Instant{4'000'002}}};
  r.features_set = {"fast"};
  r.comment = "by the window";
  return r;
}

StoredSpec array_spec() {
  StoredSpec stored;
  stored.spec.name = "name";
  stored.spec.partition = "batch";
  stored.spec.array.emplace().ranges = {{0, 9, 1}};
  stored.spec.dependencies.emplace_back().job = JobId(4);
  stored.owner.user = "alice";
  stored.owner.uid = Uid(1000);
  return stored;
}

const Bytes& value_of(const store::FoldBatch& fold, store::Table table, std::string_view key) {
  for (const store::RecordChange& change : fold.records)
    if (change.table == table && change.key == key) {
      REQUIRE(change.value);
      return *change.value;
    }
  FAIL("the fold has no such record");
  static const Bytes none;
  return none;
}

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

}  // namespace

TEST_CASE("the records of this test set every field") {
  FieldNames unset;  // unset in both records of jobs
  for (const std::string& name : unset_fields(of_array()))
    if (unset_fields(of_element()).contains(name)) unset.insert(name);
  CHECK(unset == FieldNames{});
  CHECK(unset_fields(every_field_of_an_attempt()) == FieldNames{});
  CHECK(unset_fields(every_field_of_tasks()) == FieldNames{});
  CHECK(unset_fields(of_node()) == FieldNames{});
}

TEST_CASE("each field of a record survives load and fold, byte for byte") {
  const std::string array_key = store::ordered_key(5), element_key = store::ordered_key(6);
  const Bytes array = codec::encode(of_array()), element = codec::encode(of_element());
  const Bytes node = codec::encode(of_node());
  const Bytes partition = codec::encode(PartitionRecord{PartitionId(1),
                                                        false,
                                                        false,
                                                        PartitionOrigin::command,
                                                        {{"max_time", "1h"}},
                                                        "root",
                                                        Instant{5}});
  MutableState state;
  Loader loader(state);
  REQUIRE(loader.record(store::Table::node, "n1", node));
  REQUIRE(loader.record(store::Table::partition, "batch", partition));
  REQUIRE(loader.record(store::Table::job_state, array_key, array));
  REQUIRE(loader.record(store::Table::job_state, element_key, element));
  REQUIRE(loader.spec(JobId(5), codec::encode(array_spec())));
  REQUIRE(loader.finish());

  touch(state, state.node(NodeId(1)));
  state.unfolded.partitions.push_back(PartitionId(1));
  touch(state, state.jobs.at(JobId(5)));
  touch(state, state.jobs.at(JobId(6)));
  const store::FoldBatch written = fold(state, EventSeq(1));
  CHECK(hex(value_of(written, store::Table::job_state, array_key)) == hex(array));
  CHECK(hex(value_of(written, store::Table::job_state, element_key)) == hex(element));
  CHECK(hex(value_of(written, store::Table::node, "n1")) == hex(node));
  CHECK(hex(value_of(written, store::Table::partition, "batch")) == hex(partition));

  gantry::test::check_golden("tests/golden/records.txt",
                             "job: " + hex(array) + "\nelement: " + hex(element) +
                                 "\nnode: " + hex(node) + "\npartition: " + hex(partition) + "\n");
}
