#include "common/net/zap.h"

#include <fmt/core.h>
#include <pthread.h>

#include <csignal>
#include <vector>

#include "common/net/keys.h"

namespace gantry::net {
namespace {

constexpr const char* kZapEndpoint = "inproc://zeromq.zap.01";
constexpr const char* kStopEndpoint = "inproc://gantry.zap.stop";

// Request: version, request id, domain, address, identity, mechanism, credentials...
// Reply: version, request id, status code, status text, user id, metadata.
void answer(void* zap) {
  std::vector<std::string> request;
  bool more = true;
  while (more) {
    ZmqFrame frame;
    if (!frame.receive(zap)) return;
    request.emplace_back(frame.view());
    more = frame.more();
  }
  const bool curve = request.size() == 7 && request[5] == "CURVE" && request[6].size() == kKeyBytes;
  send_frame(zap, "1.0", true);
  send_frame(zap, request.size() > 1 ? request[1] : "", true);
  send_frame(zap, curve ? "200" : "400", true);
  send_frame(zap, curve ? "OK" : "CURVE is required", true);
  send_frame(zap, curve ? to_hex(request[6]) : "", true);
  send_frame(zap, "", false);
}

void serve(ZmqSocket zap, ZmqSocket stop) {
  while (true) {
    zmq_pollitem_t items[] = {{zap.get(), 0, ZMQ_POLLIN, 0}, {stop.get(), 0, ZMQ_POLLIN, 0}};
    if (zmq_poll(items, 2, -1) < 0) {
      if (zmq_errno() == EINTR) continue;
      return;  // the context ends
    }
    if (items[1].revents != 0) return;
    if (items[0].revents != 0) answer(zap.get());
  }
}

}  // namespace

Result<ZapAcceptor> ZapAcceptor::start(void* context) {
  ZmqSocket zap(zmq_socket(context, ZMQ_REP));
  ZmqSocket stop(zmq_socket(context, ZMQ_PAIR));
  ZmqSocket stopped(zmq_socket(context, ZMQ_PAIR));
  if (!zap || !stop || !stopped || zmq_bind(zap.get(), kZapEndpoint) != 0 ||
      zmq_bind(stop.get(), kStopEndpoint) != 0 || zmq_connect(stopped.get(), kStopEndpoint) != 0)
    return fail(ErrorCode::internal, "cannot set up the ZeroMQ authenticator: " + zmq_error());
  // Signals are for the loop's thread: a new thread inherits the mask.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(serve, std::move(zap), std::move(stopped));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return ZapAcceptor(std::move(stop), std::move(thread));
}

ZapAcceptor::~ZapAcceptor() {
  if (!thread_.joinable()) return;
  send_frame(stop_.get(), "", false);
  thread_.join();
}

}  // namespace gantry::net
