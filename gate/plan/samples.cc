#include "gate/plan/samples.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace gantry::gate {

namespace {

constexpr std::size_t kWords = 13;
constexpr double kNewPart = 0.1;  // weight of a new time in a replica's mean

template <class T>
bool number(std::string_view text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

// "a:b:c" -> "a:b" and "c"; the second is "" where there are only two words.
std::pair<std::string, std::string> service_and_version(const std::string& backend) {
  const std::size_t first = backend.find(':');
  const std::size_t second = first == std::string::npos ? first : backend.find(':', first + 1);
  if (second == std::string::npos) return {backend, ""};
  return {backend.substr(0, second), backend.substr(second + 1)};
}

void add_up(proto::GateSample& to, const proto::GateSample& from) {
  to.requests += from.requests;
  to.errors += from.errors;
  to.refused += from.refused;
  to.bytes_in += from.bytes_in;
  to.bytes_out += from.bytes_out;
  to.times.resize(std::max(to.times.size(), from.times.size()));
  for (std::size_t i = 0; i < from.times.size(); ++i) to.times[i] += from.times[i];
}

constexpr Duration kForgotten = seconds(10);
constexpr double kChange = 2;     // greatest factor of change in one step
constexpr double kNothing = 0.1;  // part of the weight below which it is not changed

}  // namespace

std::optional<RequestLine> read_request(std::string_view line) {
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
  std::array<std::string_view, kWords> words;
  for (std::size_t i = 0; i < kWords; ++i) {
    const std::size_t end = line.find(' ');
    if ((end == std::string_view::npos) != (i + 1 == kWords)) return std::nullopt;
    words[i] = line.substr(0, end);
    line.remove_prefix(i + 1 == kWords ? line.size() : end + 1);
  }
  RequestLine out;
  if (words[0] != "L" || !number(words[3], out.status) || !number(words[4], out.queued_ms) ||
      !number(words[5], out.connect_ms) || !number(words[6], out.answer_ms) ||
      !number(words[7], out.whole_ms) || !number(words[9], out.bytes_in) ||
      !number(words[10], out.bytes_out))
    return std::nullopt;
  out.backend = words[1];
  if (words[2] != "<NOSRV>" && words[2] != "-") out.server = words[2];
  out.end = words[8];
  if (words[11] != "-") out.service = words[11];
  return out;
}

std::size_t bucket_of(Duration time) {
  const auto us = static_cast<std::uint64_t>(std::max<std::int64_t>(time.us, 0));
  const auto& ends = proto::kLatencyBuckets;
  return static_cast<std::size_t>(std::ranges::lower_bound(ends, us) - ends.begin());
}

Samples::Counted& Samples::of(const std::string& service, const std::string& version) {
  const std::size_t colon = service.find(':');
  Counted& counted = counted_[service + ":" + version];
  counted.sample.tenant = service.substr(0, colon);
  counted.sample.service = colon == std::string::npos ? "" : service.substr(colon + 1);
  counted.sample.version = version;
  return counted;
}

void Samples::add(const RequestLine& r, Instant now) {
  if (r.service.empty()) return;
  const bool reached = !r.server.empty();
  const std::string version = reached ? service_and_version(r.backend).second : "";
  Counted& counted = of(r.service, version);
  proto::GateSample& sample = counted.sample;
  ++sample.requests;
  sample.bytes_in += r.bytes_in;
  sample.bytes_out += r.bytes_out;
  const Duration whole = milliseconds(std::max<std::int64_t>(r.whole_ms, 0));
  counted.whole_us += std::min(whole, now - since_).us;
  ++counted.ended;
  if (whole > now - since_) ++counted.began_before;
  if (!reached) {
    if (r.status == 429 || r.status == 503) ++sample.refused;
    return;
  }
  // A client that disconnects is no failure of the replica.
  const bool client_went = r.end.starts_with('C') || r.end.starts_with('c');
  if (!client_went && (r.status >= 500 || r.status <= 0)) ++sample.errors;
  if (r.answer_ms < 0) return;
  const Duration time = milliseconds(r.answer_ms + std::max<std::int64_t>(r.queued_ms, 0) +
                                     std::max<std::int64_t>(r.connect_ms, 0));
  sample.times.resize(proto::kLatencyBuckets.size() + 1);
  ++sample.times[bucket_of(time)];
  ReplicaTimes& replica = replicas_[r.server];
  const double in_it = static_cast<double>(r.answer_ms) * 1000 + 500;
  replica.mean_us =
      replica.mean_us == 0 ? in_it : replica.mean_us * (1 - kNewPart) + in_it * kNewPart;
  ++replica.count;
  replica.last = now;
}

// For ended requests the log has their duration. For requests in progress, only their number at the
// start and the end of the span is known: those from the start count for the whole span, the others
// for half of it.
std::vector<proto::GateSample> Samples::take(Instant now, const std::vector<Seen>& seen,
                                             const std::map<std::string, std::uint32_t>& held) {
  for (auto& [name, counted] : counted_) counted.sample.running = counted.sample.waiting = 0;
  for (const Seen& process : seen)
    for (const auto& [name, backend] : process) {
      const auto [service, version] = service_and_version(name);
      if (version.empty()) continue;
      proto::GateSample& sample = of(service, version).sample;
      sample.waiting += backend.waiting;
      for (const auto& [server, s] : backend.servers) sample.running += s.running;
    }
  for (const auto& [service, number] : held) of(service, "").sample.waiting += number;
  const Duration span = now - since_;
  std::vector<proto::GateSample> out;
  for (auto it = counted_.begin(); it != counted_.end();) {
    Counted& counted = it->second;
    proto::GateSample& sample = counted.sample;
    const std::uint32_t here = sample.running + sample.waiting;
    if (span > Duration{}) {
      const std::uint64_t stayed = std::min<std::uint64_t>(
          here, counted.last_running -
                    std::min<std::uint64_t>(counted.last_running, counted.began_before));
      const double whole = static_cast<double>(span.us);
      const double sum = static_cast<double>(counted.whole_us) +
                         static_cast<double>(stayed) * whole +
                         static_cast<double>(here - stayed) * whole / 2;
      sample.concurrency = static_cast<std::uint64_t>(sum * 1000 / whole);
    }
    sample.span = span;
    const bool quiet = counted.ended == 0 && here == 0 && counted.last_running == 0;
    if (!quiet) out.push_back(sample);
    if (quiet) {
      it = counted_.erase(it);
      continue;
    }
    Counted next;
    next.last_running = here;
    next.sample.tenant = sample.tenant;
    next.sample.service = sample.service;
    next.sample.version = sample.version;
    counted = std::move(next);
    ++it;
  }
  since_ = now;
  return out;
}

void Samples::put_back(std::vector<proto::GateSample>&& samples) {
  Duration longest{};
  for (const proto::GateSample& sample : samples) {
    Counted& counted = of(sample.tenant + ":" + sample.service, sample.version);
    add_up(counted.sample, sample);
    counted.ended += sample.requests;
    counted.whole_us += static_cast<std::int64_t>(static_cast<double>(sample.concurrency) *
                                                  static_cast<double>(sample.span.us) / 1000);
    longest = std::max(longest, sample.span);
  }
  since_ = since_ - longest;
}

std::map<std::string, std::uint32_t> weights_of(
    const std::map<std::string, std::uint32_t>& now_have,
    const std::map<std::string, ReplicaTimes>& times, Instant now) {
  const auto mean = [&](const std::string& server) {
    const auto it = times.find(server);
    return it == times.end() || now - it->second.last > kForgotten ? 0 : it->second.mean_us;
  };
  double fastest = 0;
  for (const auto& [server, weight] : now_have)
    if (const double time = mean(server); time > 0 && (fastest == 0 || time < fastest))
      fastest = time;
  std::map<std::string, std::uint32_t> out;
  for (const auto& [server, weight] : now_have) {
    const double time = mean(server), old = weight;
    const double exact = time == 0 ? kFullWeight : kFullWeight * fastest / time;
    const double near = std::clamp(exact, old / kChange, old * kChange);
    const bool same = std::abs(near - old) < old * kNothing;
    out[server] =
        same ? weight
             : std::clamp(static_cast<std::uint32_t>(std::lround(near)), kLeastWeight, kFullWeight);
  }
  return out;
}

}  // namespace gantry::gate
