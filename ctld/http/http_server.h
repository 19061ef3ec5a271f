// A small HTTP/1.1 server for GET: one request a connection, one after the other, on a thread of
// its own. Bounded in time and size; meant for loopback and scrapers, not for the open world.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "ctld/http/socket.h"

namespace gantry::http {

inline constexpr std::size_t kMostRequest = 8 * 1024;  // octets of a request's head

struct Request {
  std::string path;   // "/metrics"
  std::string query;  // behind "?"; not decoded
  std::string token;  // of "Authorization: Bearer"; "" = none
};
struct Response {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};

class Server {
 public:
  // Called on the server's thread; may block, as long as `stopping` does not say otherwise.
  using Answer = std::function<Response(const Request&, const std::atomic<bool>& stopping)>;

  Server(Fd listening, Answer answer);
  ~Server();  // waits for the request that is being answered
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  void run();
  void serve(const Fd& connection);

  Fd listening_, wake_read_, wake_write_;
  std::uint16_t port_;
  Answer answer_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

// "limit" of "after=7&limit=10"; "" if it is not there.
std::string parameter(const std::string& query, std::string_view name);

}  // namespace gantry::http
