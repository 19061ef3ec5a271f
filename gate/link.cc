#include "gate/link.h"

#include "cli/session.h"

namespace gantry::gate {
namespace {

constexpr Duration kAnswerTime = seconds(10);

}  // namespace

Link::Link(loop::Loop& loop, OnAnswer on_answer)
    : loop_(loop), on_answer_(std::move(on_answer)), thread_([this] { run(); }) {}

Link::~Link() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Link::ask(proto::SyncGate&& question) {
  busy_ = true;
  {
    const std::lock_guard lock(mutex_);
    question_ = std::move(question);
  }
  wake_.notify_one();
}

void Link::run() {
  std::optional<cli::Session> session;
  for (;;) {
    std::optional<proto::SyncGate> question;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return ends_ || question_; });
      if (ends_) return;
      question.swap(question_);
    }
    Result<proto::GateTable> answer = fail(ErrorCode::unavailable, "");
    if (!session) {
      auto opened = cli::Session::open("gantry-gate");
      if (opened)
        session.emplace(std::move(*opened));
      else
        answer = tl::unexpected(opened.error());
    }
    if (session) {
      answer = session->call_once<proto::GateTable>(*question, kAnswerTime);
      if (!answer) session.reset();
    }
    loop_.post([this, answer = std::move(answer)]() mutable {
      busy_ = false;
      on_answer_(std::move(answer));
    });
  }
}

}  // namespace gantry::gate
