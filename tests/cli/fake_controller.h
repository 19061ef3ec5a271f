// A controller without a state: it answers each kind of message, over the real transport, with the
// reply that a test has set, and keeps the requests that it got.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/assert.h"
#include "common/codec/codec.h"
#include "common/net/router.h"
#include "common/proto/messages.h"
#include "tests/cli/run_program.h"

namespace gantry::test {

class FakeController {
 public:
  FakeController();
  ~FakeController();

  // Variables with which the commands find this controller and a key to authenticate with.
  [[nodiscard]] std::map<std::string, std::string> environment() const {
    return {{"GANTRY_CONF", files_.path()}};
  }

  // Answers requests of type Request with the result of `make`: any reply, or an ErrorReply.
  template <class Request, class Make>
  void on(Make make) {
    const std::lock_guard lock(mutex_);
    handlers_[static_cast<std::uint16_t>(proto::number_of<Request>)] = [make](const Bytes& body) {
      const auto request = codec::decode<Request>(body);
      return encode(make(*request));
    };
  }
  template <class Request, class Reply>
  void answer(Reply reply) {
    on<Request>([reply](const Request&) { return reply; });
  }

  // Returns the last request of its type; asserts that there was one.
  template <class Request>
  Request last() {
    const std::lock_guard lock(mutex_);
    const auto found = seen_.find(static_cast<std::uint16_t>(proto::number_of<Request>));
    GANTRY_ASSERT(found != seen_.end(), "no such request came");
    return *codec::decode<Request>(found->second);
  }
  std::size_t count(proto::MessageType type);
  // the next `requests` requests are read and never answered
  void drop_next(int requests) { drop_ = requests; }

  Run run(std::vector<std::string> argv, std::string input = {},
          std::map<std::string, std::string> more = {});

 private:
  struct Answer {
    std::uint16_t type = 0;
    Bytes body;
  };
  template <class Reply>
  static Answer encode(const Reply& reply) {
    return {static_cast<std::uint16_t>(proto::number_of<Reply>), codec::encode(reply)};
  }
  void serve();
  void handle(const net::Incoming& message);

  ScratchDir files_;
  std::mutex mutex_;
  std::map<std::uint16_t, std::function<Answer(const Bytes&)>> handlers_;
  std::map<std::uint16_t, Bytes> seen_;
  std::map<std::uint16_t, std::size_t> counts_;
  std::unique_ptr<net::Router> router_;
  std::atomic<bool> stop_ = false;
  std::atomic<int> drop_ = 0;
  std::thread thread_;
};

// From now on it accepts every submit, as job 42 of partition batch.
inline void accept_job(FakeController& fake) {
  proto::SubmitReply reply;
  reply.job = JobId{42};
  reply.partition = "batch";
  fake.answer<proto::SubmitJob>(reply);
}

}  // namespace gantry::test
