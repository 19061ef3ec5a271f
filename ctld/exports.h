// Exports: what is sent out after a commit (usage events, mail, programs of triggers), and what is
// read over HTTP (metrics, usage, keys of identity tokens).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "ctld/core/turn_out.h"
#include "ctld/shell.h"
#include "ctld/store/scrubber.h"
#include "ctld/store/store.h"

namespace gantry::acct {
class UsageLog;
}
namespace gantry::http {
class Server;
class Tokens;
class Webhook;
struct Request;
struct Response;
}  // namespace gantry::http

namespace gantry::ctld {

class Mailer;
class Notary;
class Programs;

class Exports {
 public:
  // `more_metrics` runs on the loop's thread; its text is only for users who may see everything.
  Exports(const Shell& shell, Notary& notary, std::function<std::string()> more_metrics);
  ~Exports();
  Result<void> open();

  // Sends what a turn produced, after its commit. An error means that usage events are not stored.
  Result<void> committed(core::Turn& turn);
  // Makes the usage events durable; the journal's tail may be dropped after this.
  Result<void> sync();

 private:
  // Both run on the HTTP thread.
  http::Response answer(const http::Request& request, const std::atomic<bool>& stopping);
  [[nodiscard]] http::Response usage_page(const http::Request& request,
                                          const std::string& tenant) const;

  const Shell& shell_;
  Notary& notary_;
  std::function<std::string()> more_metrics_;
  std::unique_ptr<acct::UsageLog> usage_;
  std::unique_ptr<Mailer> mailer_;  // only with controller.mail_program
  std::unique_ptr<Programs> programs_;
  std::unique_ptr<http::Webhook> webhook_;
  std::unique_ptr<http::Tokens> tokens_;  // belongs to the HTTP thread
  std::unique_ptr<http::Server> http_;
};

// The progress of the slow scrub of the store.
[[nodiscard]] std::string store_metrics(const store::ScrubStatus& scrub);

}  // namespace gantry::ctld
