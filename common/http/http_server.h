// A small HTTP/1.1 server for GET, with one request per connection, on a thread of its own. It
// waits for all connections at once, so a silent or slow one does not delay the others. Time, sizes
// and numbers are limited; if there are too many connections, the one that has been silent longest
// is closed. It is meant for loopback and scrapers, not for the open internet.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <string>
#include <thread>

#include "common/http/socket.h"

namespace gantry::http {

inline constexpr std::size_t kMostRequest = 8 * 1024;  // octets of a request's head
inline constexpr std::size_t kMostConnections = 128;
inline constexpr std::size_t kMostUnread = 64u << 20;  // octets of answers that are not read
inline constexpr std::chrono::seconds kRequestTime{3};
inline constexpr std::chrono::seconds kResponseTime{10};

struct Request {
  std::string path;   // "/metrics"
  std::string query;  // text after "?"; not decoded
  std::string token;  // of "Authorization: Bearer"; "" = none
};
struct Response {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};

class Server {
 public:
  // Answers a request. It is called on the server's thread, and the other connections wait until it
  // returns. It may take seconds, but should return soon once `stopping` is true.
  using Answer = std::function<Response(const Request&, const std::atomic<bool>& stopping)>;

  Server(Fd listening, Answer answer);
  ~Server();  // waits for the request that is being answered
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  struct Connection;

  void run();
  void wait();
  void accept_some();
  void make_room();
  bool serve(Connection& c);  // returns false if the connection is finished
  bool read(Connection& c);
  void answer(Connection& c, std::size_t end);
  bool write(Connection& c);

  Fd listening_, wake_read_, wake_write_;
  std::uint16_t port_;
  Answer answer_;
  std::list<Connection> connections_;  // the oldest first; used by the thread only
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

// The value of a parameter: "10" for "limit" in "after=7&limit=10"; "" if it does not exist.
std::string parameter(const std::string& query, std::string_view name);

}  // namespace gantry::http
