h = 0.16;
Point(1) = {0,0,0,h}; Point(2)={1,0,0,h}; Point(3)={0,1,0,h}; Point(4)={-1,0,0,h}; Point(5)={0,-1,0,h};
Point(6)={0.4,0,0,h}; Point(7)={0,0.4,0,h}; Point(8)={-0.4,0,0,h}; Point(9)={0,-0.4,0,h};
Circle(1)={2,1,3}; Circle(2)={3,1,4}; Circle(3)={4,1,5}; Circle(4)={5,1,2};
Circle(5)={6,1,7}; Circle(6)={7,1,8}; Circle(7)={8,1,9}; Circle(8)={9,1,6};
Curve Loop(1)={1,2,3,4}; Curve Loop(2)={5,6,7,8}; Plane Surface(1)={1,2};
Physical Curve("outer")={1,2,3,4}; Physical Curve("inner")={5,6,7,8}; Physical Surface("ring")={1};
