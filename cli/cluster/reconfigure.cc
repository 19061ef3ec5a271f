#include "cli/cluster/reconfigure.h"

#include <ctime>

#include "cli/session.h"

namespace gantry::cli {
namespace {

constexpr Duration kRestartPatience =
    seconds(60);  // a controller with a store of millions of jobs needs a while to read it
constexpr timespec kRestartPause{0, 50'000'000};

}  // namespace

Result<void> reconfigure(std::string_view program) {
  ASSIGN(session, Session::open(program));
  ASSIGN(before, session->call<proto::PingReply>(proto::Ping{}));
  TRY(session->call<proto::Ok>(proto::Reconfigure{}));
  for (const Instant end = system_now() + kRestartPatience; system_now() < end;) {
    ::nanosleep(&kRestartPause, nullptr);
    auto again = Session::open(program);
    if (!again) continue;
    const auto now = again->call<proto::PingReply>(proto::Ping{}, seconds(5));
    if (!now || now->started == before->started) continue;
    if (now->config_problem.empty()) return {};
    return fail(ErrorCode::wrong_state,
                "the controller could not start with the new configuration and goes on with the "
                "one it had: " +
                    now->config_problem);
  }
  return fail(ErrorCode::timed_out,
              "the controller does not answer; its log says what it waits for");
}

}  // namespace gantry::cli
