// Checks which requests are written, with which outcome, and what of them.
#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <vector>

#include "common/audit/audit_reader.h"
#include "common/proto/cluster.h"
#include "common/proto/job_change.h"
#include "common/proto/job_query.h"
#include "common/proto/job_submit.h"
#include "common/proto/message_table.h"
#include "common/proto/session.h"
#include "common/proto/tenancy.h"
#include "ctld/core/request.h"
#include "ctld/rpc/audit_about.h"
#include "ctld/rpc/audit_trail.h"

using namespace gantry;
using namespace gantry::rpc;

namespace {

struct Trail {
  Trail() {
    REQUIRE(::mkdtemp(path.data()) != nullptr);
    auto log = audit::AuditLog::open(path, Instant{1});
    REQUIRE(log);
    trail = std::make_unique<AuditTrail>(std::move(*log));
  }
  ~Trail() { std::filesystem::remove_all(path); }
  void begin(std::uint64_t connection, std::uint64_t request, bool weighty = false) {
    audit::Record record;
    record.message = "CancelJobs";
    trail->begin(core::ConnectionId(connection), request, std::move(record), weighty);
  }
  [[nodiscard]] std::vector<std::string> outcomes() const {
    std::vector<std::string> out;
    REQUIRE(audit::walk(path, [&](const audit::Record& r, std::string_view) {
      out.push_back(r.why.empty() ? r.outcome : r.outcome + ": " + r.why);
    }));
    return out;
  }
  std::string path = "/tmp/gantry-audit.XXXXXX";
  std::unique_ptr<AuditTrail> trail;
};

}  // namespace

TEST_CASE("a request is written once, with what became of it") {
  Trail t;
  t.begin(1, 7);
  t.begin(1, 8);
  t.begin(2, 7);
  const Error denied{ErrorCode::permission_denied, "bob may not"};
  REQUIRE(t.trail->finish(core::ConnectionId(1), 8, &denied, Instant{5}));
  REQUIRE(t.trail->finish(core::ConnectionId(1), 8, nullptr, Instant{5}));  // once
  REQUIRE(t.trail->finish(core::ConnectionId(3), 9, nullptr, Instant{5}));  // never noted
  REQUIRE(t.trail->finish(core::ConnectionId(2), 7, nullptr, Instant{6}));
  REQUIRE(t.trail->forget(core::ConnectionId(1), Instant{7}));
  CHECK(t.outcomes() ==
        std::vector<std::string>{"permission_denied: bob may not", "done", "unanswered"});
}

TEST_CASE("a request does not hide behind another one with its number") {
  Trail t;
  t.begin(1, 7);
  t.begin(1, 7);
  const Error denied{ErrorCode::permission_denied, "no"};
  REQUIRE(t.trail->finish(core::ConnectionId(1), 7, nullptr, Instant{5}));
  REQUIRE(t.trail->finish(core::ConnectionId(1), 7, &denied, Instant{5}));
  CHECK(t.outcomes() == std::vector<std::string>{"done", "permission_denied: no"});
}

TEST_CASE("the record of a weighty change has to be on the disk before its answer") {
  Trail t;
  t.begin(1, 1);
  t.begin(1, 2, true);
  t.begin(1, 3, true);
  const Error denied{ErrorCode::permission_denied, "no"};
  REQUIRE(t.trail->finish(core::ConnectionId(1), 1, nullptr, Instant{5}));
  REQUIRE(t.trail->finish(core::ConnectionId(1), 2, &denied, Instant{5}));
  CHECK_FALSE(t.trail->must_sync());
  REQUIRE(t.trail->finish(core::ConnectionId(1), 3, nullptr, Instant{5}));
  CHECK(t.trail->must_sync());
  REQUIRE(t.trail->sync());
  CHECK_FALSE(t.trail->must_sync());
}

TEST_CASE("every request that changes something or needs a role is written") {
  for (const proto::MessageRow& row : proto::kMessages) {
    CAPTURE(row.name);
    if (row.kind == proto::MessageKind::write || row.lasts) CHECK(AuditTrail::is_written(row));
    if (row.kind == proto::MessageKind::reply) CHECK_FALSE(AuditTrail::is_written(row));
  }
  CHECK(AuditTrail::is_written(proto::kRowOf<proto::MakeToken>));
  CHECK_FALSE(AuditTrail::is_written(proto::kRowOf<proto::ListJobs>));
}

TEST_CASE("a record names what a request is about, and nothing that may be secret") {
  proto::SubmitJob submit;
  submit.spec.name = "train\x1b[2J";
  submit.spec.partition = "fraud";
  submit.script = "#!/bin/sh\nexport TOKEN=hunter2\n";
  submit.environment = {{"PASSWORD", "hunter2"}};
  submit.spec.comment = "hunter2";
  const std::string said = about(core::ClientMessage(std::move(submit)));
  CHECK(said.find("name=train?[2J") != std::string::npos);
  CHECK(said.find("partition=fraud") != std::string::npos);
  CHECK(said.find("hunter2") == std::string::npos);

  proto::CancelJobs cancel;
  for (std::uint64_t id = 1; id <= 9; ++id) cancel.filter.jobs.push_back({JobId(id), {}});
  const std::string many = about(core::ClientMessage(std::move(cancel)));
  CHECK(many.find("job=1 job=2") != std::string::npos);
  CHECK(many.find("job=7") == std::string::npos);

  proto::ApplyTenancy apply;
  tenancy::Tenant tenant;
  tenant.name = "fraud";
  apply.documents = {tenant};
  CHECK(about(core::ClientMessage(std::move(apply))).find("Tenant=fraud") != std::string::npos);

  proto::UpdateNodes nodes;
  nodes.nodes = std::vector<std::string>(200, std::string(90, 'n'));
  CHECK(about(core::ClientMessage(std::move(nodes))).size() <= kMostAbout);
}

TEST_CASE("what was refused for every job is a refusal, what was done for one is not") {
  proto::JobsDone done;
  CHECK_FALSE(refusal_in(core::ReplyMessage(done)));
  done.refused.push_back(
      {{JobId(7), {}},
       {static_cast<std::uint16_t>(ErrorCode::permission_denied), "it is carol's"}});
  CHECK(refusal_in(core::ReplyMessage(done))->message == "it is carol's");
  done.changed = 1;
  CHECK_FALSE(refusal_in(core::ReplyMessage(done)));
}
