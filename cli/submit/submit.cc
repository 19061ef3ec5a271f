#include "cli/submit/submit.h"

#include <ctime>

namespace gantry::cli {
namespace {

template <class Message>
Result<proto::SubmitReply> submit(const std::string& program, const Message& message,
                                  std::optional<Session>& session) {
  constexpr long kPauses[] = {100, 300, 900};  // milliseconds between attempts
  for (const long& pause : kPauses) {
    auto opened = Session::open(program);
    if (!opened && &pause == kPauses) return tl::unexpected(opened.error());
    if (opened) {
      session.emplace(std::move(*opened));
      auto reply = session->call_once<proto::SubmitReply>(message);
      if (reply || !may_retry(reply.error().code)) return reply;
    }
    const timespec time{0, pause * 1'000'000};
    ::nanosleep(&time, nullptr);
  }
  ASSIGN(opened, Session::open(program));
  session.emplace(std::move(*opened));
  return session->call<proto::SubmitReply>(message);
}

}  // namespace

Result<proto::SubmitReply> submit_job(const std::string& program, const proto::SubmitJob& message,
                                      std::optional<Session>& session) {
  return submit(program, message, session);
}

Result<proto::SubmitReply> submit_job(const std::string& program,
                                      const proto::SubmitTogether& message,
                                      std::optional<Session>& session) {
  return submit(program, message, session);
}

}  // namespace gantry::cli
