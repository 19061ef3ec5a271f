// GET /metrics and /usage (/.well-known: notary.h). Metrics are made on the loop's thread, usage
// comes from the file of usage events. The code that feeds that file and the webhook is here too.
#include "ctld/exports.h"

#include <charconv>
#include <filesystem>
#include <future>

#include <fmt/core.h>

#include "common/http/http_server.h"
#include "common/http/tokens.h"
#include "ctld/acct/usage_log.h"
#include "ctld/core/core.h"
#include "ctld/core/money/metrics.h"
#include "ctld/core/runtime.h"
#include "ctld/core/services/service_metrics.h"
#include "ctld/core/state/state.h"
#include "ctld/core/turn_out.h"
#include "ctld/http/webhook.h"
#include "ctld/mailer.h"
#include "ctld/notary.h"
#include "ctld/programs.h"
#include "ctld/store/store.h"

namespace gantry::ctld {
namespace {

constexpr std::chrono::milliseconds kLook{50};
constexpr std::chrono::seconds kMostWait{5};
constexpr std::size_t kUsagePage = 4 * 1024 * 1024;  // octets
constexpr std::string_view kText = "text/plain; charset=utf-8";

http::Response refusal(int status, std::string text) {
  return {status, std::string(kText), std::move(text) + "\n"};
}

// Waits for the text that the loop's thread makes. Returns nullopt if it does not come in time.
std::optional<std::string> wait_for(std::future<std::string>& text,
                                    const std::atomic<bool>& stopping) {
  const auto until = std::chrono::steady_clock::now() + kMostWait;
  while (!stopping && std::chrono::steady_clock::now() < until)
    if (text.wait_for(kLook) == std::future_status::ready) return text.get();
  return std::nullopt;
}

// The client.conf beside gantry.yaml (by themselves commands look only in /etc/gantry); "" if there
// is none.
std::string client_config_beside(const std::string& config) {
  const std::filesystem::path path = std::filesystem::path(config).parent_path() / "client.conf";
  std::error_code unknown;
  return std::filesystem::exists(path, unknown) ? std::filesystem::absolute(path).string()
                                                : std::string();
}

}  // namespace

Exports::Exports(const Shell& shell, Notary& notary, std::function<std::string()> more_metrics)
    : shell_(shell), notary_(notary), more_metrics_(std::move(more_metrics)) {}

Exports::~Exports() {
  http_.reset();
  webhook_.reset();
  mailer_.reset();
  programs_.reset();
}

Result<void> Exports::open() {
  const ControllerConfig& c = shell_.config.controller;
  const auto warn = [this](std::string note) {  // from any thread
    shell_.loop.post([this, note = std::move(note)] { shell_.log.write(LogLevel::warning, note); });
  };
  if (!c.usage_events.empty()) {
    ASSIGN(log, acct::UsageLog::open(c.usage_events));
    usage_ = std::move(*log);
  }
  if (!c.usage_webhook.empty()) {
    ASSIGN(url, http::parse_url(c.usage_webhook));
    webhook_ =
        std::make_unique<http::Webhook>(*url, c.usage_events, c.usage_events + ".sent", warn);
  }
  if (!c.mail_program.empty()) mailer_ = std::make_unique<Mailer>(c.mail_program, warn);
  programs_ = std::make_unique<Programs>(warn, client_config_beside(shell_.config.path));
  if (c.metrics_port == 0) return {};
  ASSIGN(listening, http::listen_on(c.metrics_host, c.metrics_port));
  tokens_ = std::make_unique<http::Tokens>(c.metrics_tokens);
  http_ = std::make_unique<http::Server>(
      std::move(*listening), [this](const http::Request& request, const std::atomic<bool>& stop) {
        return answer(request, stop);
      });
  shell_.log.write(LogLevel::info, "metrics",
                   {{"address", fmt::format("{}:{}", c.metrics_host, http_->port())}});
  return {};
}

Result<void> Exports::committed(core::Turn& turn) {
  if (usage_ && !turn.usage.empty()) {
    TRY(usage_->append(turn.usage));
    if (webhook_) webhook_->wake();
  }
  if (mailer_ && !turn.letters.empty()) mailer_->send(std::move(turn.letters));
  if (programs_ && !turn.programs.empty()) programs_->run(std::move(turn.programs));
  return {};
}

Result<void> Exports::sync() {
  return usage_ ? usage_->sync() : Result<void>{};
}

std::string store_metrics(const store::ScrubStatus& scrub) {
  const auto one = [](std::string_view name, std::string_view type, std::string_view help,
                      std::uint64_t value) {
    return fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{0} {3}\n", name, help, type, value);
  };
  return one("gantry_store_scrub_passes_total", "counter",
             "Times that the whole store was read again and its checksums looked at.",
             scrub.passes) +
         one("gantry_store_scrub_bytes", "gauge", "Bytes of the store that this pass has read.",
             scrub.octets) +
         one("gantry_store_damaged_entries", "gauge",
             "Entries of the store without their checksum; see docs/store.md.", scrub.damaged);
}

// Runs on the HTTP thread.
http::Response Exports::answer(const http::Request& request, const std::atomic<bool>& stopping) {
  // The keys with which tokens are checked are public.
  if (request.path.starts_with("/.well-known/")) return notary_.page(request.path);
  const bool metrics = request.path == "/metrics";
  if (!metrics && request.path != "/usage")
    return refusal(404,
                   "there are /metrics, /usage, /.well-known/openid-configuration and "
                   "/.well-known/jwks.json");
  const auto scope = tokens_->scope_of(request.token);
  if (!scope) return refusal(503, scope.error().message);
  if (!*scope) return refusal(401, "a token is needed: Authorization: Bearer TOKEN");
  const std::optional<std::string> tenant = (*scope)->tenant;
  if (!metrics) return usage_page(request, tenant.value_or(""));
  // The promise is shared, because either the loop or the waiting thread may be the last to use it.
  auto made = std::make_shared<std::promise<std::string>>();
  std::future<std::string> text = made->get_future();
  shell_.loop.post([this, tenant, made] {
    const core::Core& core = shell_.core;
    std::string all = core::metrics_text(core.state(), shell_.clock.now(), tenant,
                                         shell_.config.controller.metrics_labels);
    all +=
        core::service_metrics({core.state(), *core.runtime().services, shell_.clock.now()}, tenant);
    if (!tenant) all += more_metrics_();
    made->set_value(std::move(all));
  });
  auto body = wait_for(text, stopping);
  if (!body) return refusal(503, "the controller is busy; ask again");
  return {200, "text/plain; version=0.0.4; charset=utf-8", std::move(*body)};
}

http::Response Exports::usage_page(const http::Request& request, const std::string& tenant) const {
  const std::string& path = shell_.config.controller.usage_events;
  if (path.empty()) return refusal(404, "controller.usage_events is not set");
  std::uint64_t after = 0;
  const std::string text = http::parameter(request.query, "after");
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), after);
  if (!text.empty() && (error != std::errc() || end != text.data() + text.size()))
    return refusal(400, "after is the seq of the last event that is known");
  auto lines = acct::usage_lines(path, after, tenant, kUsagePage);
  if (!lines) return refusal(503, lines.error().message);
  return {200, "application/x-ndjson", std::move(*lines)};
}

}  // namespace gantry::ctld
