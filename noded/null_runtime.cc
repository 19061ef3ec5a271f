#include "noded/null_runtime.h"

#include <csignal>

#include "common/codec/codec.h"
#include "common/proto/step_io.h"

namespace gantry::node {

namespace {

Ended ended(const AttemptKey& key, Instant now, std::int32_t signal = 0) {
  Exit exit;
  exit.status.signal = signal;
  exit.started = now;
  exit.ended = now;
  return {key, std::move(exit)};
}

}  // namespace

std::optional<Owner> NullRuntime::owner_of(const AttemptKey& key) const {
  const auto it = waiting_.find(key);
  if (it == waiting_.end()) return std::nullopt;
  return it->second.owner;
}

void NullRuntime::act(Instant now, Action&& action, std::vector<Input>& events) {
  const auto run = [&](const AttemptKey& key, bool holder, const Owner& owner) {
    events.emplace_back(Running{key, now});
    if (holder)
      waiting_[key] = {true, owner};
    else
      events.emplace_back(ended(key, now));
  };
  const auto end = [&](const AttemptKey& key, std::int32_t signal) {
    if (waiting_.erase(key) > 0) events.emplace_back(ended(key, now, signal));
  };
  if (auto* begin = std::get_if<Begin>(&action)) {
    const proto::Launch& launch = begin->launch;
    const bool holder = !launch.runs_batch || launch.spec.kind == JobKind::allocation;
    if (launch.hold) {
      waiting_[launch.key] = {holder, launch.owner};
      events.emplace_back(Held{launch.key});
    } else {
      run(launch.key, holder, launch.owner);
    }
  } else if (auto* release = std::get_if<Release>(&action)) {
    const auto it = waiting_.find(release->key);
    if (it == waiting_.end()) return;
    const Waiting waited = std::move(it->second);
    waiting_.erase(it);
    run(release->key, waited.holder, waited.owner);
  } else if (auto* signal = std::get_if<Signal>(&action)) {
    if (signal->signal == SIGTERM || signal->signal == SIGKILL) end(signal->key, signal->signal);
  } else if (auto* kill = std::get_if<Kill>(&action)) {
    end(kill->key, SIGKILL);
  }
}

namespace {

constexpr Duration kPatience = seconds(2);  // to connect and to write a few kilobytes

}  // namespace

Result<void> NullSteps::begin_step(const runtime::StepRequest& request) {
  ASSIGN(socket, net::connect_to(request.io_address, net::Deadline(kPatience)));
  auto crypt =
      net::SecureStream::create(net::StreamRole::dialler, request.io_key, request.io_ticket);
  if (!crypt) return tl::unexpected(crypt.error());
  const auto say = [&](proto::StepFrame frame) { (void)crypt->send(codec::encode(frame)); };
  const auto tasks = static_cast<std::uint32_t>(request.task_env.size());
  say({proto::StepHello{request.node, request.first_rank, tasks}});
  for (std::uint32_t task = 0; task < tasks; ++task)
    say({proto::TaskExit{request.rank(task), {}, ""}});
  say({proto::StepNodeDone{}});
  crypt->finish();
  const std::uint64_t id = next_id_++;
  streams_[id] = std::unique_ptr<Stream>(new Stream{std::move(*socket), std::move(*crypt), {}});
  streams_[id]->readable =
      loop_.on_readable(streams_[id]->socket.fd(), [this, id] { on_readable(id); });
  return net::write_all(streams_[id]->socket.fd(), streams_[id]->crypt, kPatience);
}

// Frames can be sent once the hello of the other end has come. When the other end closes, or an
// error comes, the stream is closed here too.
void NullSteps::on_readable(std::uint64_t id) {
  const auto it = streams_.find(id);
  if (it == streams_.end()) return;
  Stream& stream = *it->second;
  char buffer[16 * 1024];
  const auto n = net::read_some(stream.socket.fd(), buffer, sizeof buffer);
  const bool open = n && stream.crypt.feed({buffer, *n}) &&
                    net::write_all(stream.socket.fd(), stream.crypt, kPatience);
  if (open) return;
  stream.readable.cancel();
  loop_.post([this, id] { streams_.erase(id); });
}

}  // namespace gantry::node
