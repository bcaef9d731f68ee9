// Keeps the network of cpprestsdk, whose threads belong to the whole process, on one thread while servers are open.
//
// Why one: an answer that is sent before its request's body was read closes the socket; with a second thread the
// library may begin to read from it at that moment, and crash. Why not simply a pool of one: closing a listener holds a
// thread until every connection has ended, and those end on a thread of the pool. So there are two, and the second is
// parked except while a server closes.
#pragma once

namespace medley::sched {

// One for each server, from before it listens until it has closed. Thread-safe.
class NetworkThread {
 public:
  NetworkThread();
  ~NetworkThread();
  NetworkThread(const NetworkThread&) = delete;
  NetworkThread& operator=(const NetworkThread&) = delete;

  // The server closes: from now to the destructor there are two threads. Call it once.
  void BeginClosing();

 private:
  bool closing_ = false;
};

}  // namespace medley::sched
