// Commands of scenarios about nodes' keys and tokens, and about steps that get another limit.
//
//   enroll admin n1 X [token=a]     the key is X followed by 39 times the letter K; with token= the
//                                   shell asks for a node that has shown the token with this hash
//   token admin n1 a [valid=1h]     its hash is a followed by zeros
//   untoken admin ID|NODE           unkey admin n1           tokens admin
//   steplimit alice 1 [step=0] time=10m
#include <fmt/core.h>

#include "common/proto/control.h"
#include "common/proto/job_change.h"
#include "common/proto/job_text.h"
#include "tests/core/world.h"

namespace gantry::core::test {
namespace {

std::string hash_of(const std::string& digits) {
  return digits + std::string(64 - digits.size(), '0');
}

}  // namespace

bool World::enroll_command(const std::string& verb, const Words& w) {
  proto::ChangeEnrollment m;
  if (verb == "enroll") {
    proto::EnrollNode enroll{w.plain.at(2), w.plain.at(3) + std::string(39, 'K')};
    if (w.find("token")) enroll.token_hash = hash_of(*w.find("token"));
    return ask(w.plain.at(1), std::move(enroll)), true;
  }
  if (verb == "token") {
    m.node = w.plain.at(2);
    m.hash = hash_of(w.plain.at(3));
    m.valid = w.find("valid") ? parse_length(*w.find("valid")) : hours(1);
    return ask(w.plain.at(1), std::move(m)), true;
  }
  if (verb == "untoken") {
    m.revoke = w.plain.at(2);
    return ask(w.plain.at(1), std::move(m)), true;
  }
  if (verb == "unkey") {
    m.revoke_key = w.plain.at(2);
    return ask(w.plain.at(1), std::move(m)), true;
  }
  if (verb == "tokens") return ask(w.plain.at(1), proto::ListEnrollment{}), true;
  if (verb == "steplimit") {
    proto::UpdateStep limit;
    limit.job = *parse_job_ref(w.plain.at(2));
    if (w.find("step"))
      limit.step = StepId(static_cast<std::uint32_t>(std::stoul(*w.find("step"))));
    limit.time_limit = parse_length(*w.find("time"));
    return ask(w.plain.at(1), std::move(limit)), true;
  }
  return false;
}

void World::print(const proto::EnrollmentList& m) {
  for (const proto::EnrollTokenRow& row : m.tokens)
    line(fmt::format("token {} for {} until {} by {}", row.id, row.node, time_text(row.expires),
                     row.by));
  for (const proto::EnrolledNodeRow& row : m.nodes)
    line(fmt::format("{}: {:.3}", row.node, row.public_key.empty() ? "-" : row.public_key));
}

}  // namespace gantry::core::test
